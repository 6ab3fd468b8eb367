#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
#
# Programs written for cuda.core on a machine with an NVIDIA GPU, once with cuda-core and once with this package in its
# place, and what differs. Python has to find both, numba-cuda with a NumPy before 2.5, and what its tests need (pytest,
# filecheck, psutil, ml_dtypes); nccl4py, cuda-cccl with numba-cuda-mlir, nvmath-python and nvidia-ml-py are used where
# they are installed.
#
#     PYTHON=python3 JOBS=8 SHARD=1/3 tests/gpu_clients.sh
#
# SHARD is the part of numba-cuda's suites that is run, each of which takes minutes. The first part has the rest too.
set -uo pipefail
cd "$(dirname "$0")/clients" || exit
PYTHON=${PYTHON:-python3}
export CUDA_CORE_CFFI_DRIVER=system PYTHONUNBUFFERED=1
failed=0

# Run a program with both and compare what it prints: TITLE FILE
both() {
    echo "=== $1: with this package, then what differs with cuda-core (<)"
    local theirs
    theirs=$("$PYTHON" "$2" 2> >(sed 's/^/cuda-core: /' >&2)) || failed=1
    "$PYTHON" -m cuda_core_cffi.as_cuda_core "$2" | tee /dev/stderr | diff <(echo "$theirs") - || failed=1
}

case ${SHARD:-1/1} in
1/*)
    both "a program that uses every area" every_area.py
    both "libraries that are built on cuda.core" libraries.py
    if "$PYTHON" -c "import pynvml" 2>/dev/null; then
        echo "=== NVML: what differs from nvidia-ml-py"
        "$PYTHON" compare_with_nvidia_ml_py.py || failed=1
    fi
    ;;
esac
echo "=== numba-cuda's suites, part ${SHARD:-1/1}"
"$PYTHON" numba_cuda_suites.py --both --gpu --shard "${SHARD:-1/1}" --jobs "${JOBS:-4}" || failed=1
exit $failed
