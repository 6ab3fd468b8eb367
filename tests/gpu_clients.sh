#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
#
# Programs written for cuda.core on a machine with an NVIDIA GPU, once with cuda-core and once with this package in its
# place, and what differs. Python has to find both, numba-cuda with a NumPy before 2.5, and what its tests need (pytest,
# filecheck, psutil, ml_dtypes); nccl4py, cuda-cccl with numba-cuda-mlir, nvmath-python, rapids-cli and nvidia-ml-py are
# used where they are installed.
#
#     PYTHON=python3 JOBS=8 SHARD=1/3 tests/gpu_clients.sh
#     SUITES="numba-cuda-mlir nvmath-python" PYTHONPATH=/tmp/site tests/gpu_clients.sh
#     TESTS="cccl=/tmp/cccl/python/cuda_cccl/tests" SUITES=cccl tests/gpu_clients.sh
#
# SHARD is the part of each suite that is run; numba-cuda's take minutes. The first part has the programs too. SUITES are the
# suites of clients that are run (clients/suites.py), by default all that are there; none runs the programs alone.
# TESTS adds suites: folders of tests for pytest, such as checkouts of clients. REPORT is a file for all outcomes.
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
    echo "=== names that clients import"
    "$PYTHON" -m cuda_core_cffi.as_cuda_core client_imports.py || failed=1
    both "a program that uses every area" every_area.py
    both "libraries that are built on cuda.core" libraries.py
    if "$PYTHON" -c "import pynvml" 2>/dev/null; then
        echo "=== NVML: what differs from nvidia-ml-py"
        "$PYTHON" compare_with_nvidia_ml_py.py || failed=1
    fi
    ;;
esac
if [ "${SUITES:-}" != none ]; then
    echo "=== suites of clients, part ${SHARD:-1/1}"
    tests=()
    for item in ${TESTS:-}; do tests+=(--tests "$item"); done
    # shellcheck disable=SC2086
    "$PYTHON" suites.py --gpu --shard "${SHARD:-1/1}" --jobs "${JOBS:-4}" ${REPORT:+--json "$REPORT"} "${tests[@]}" \
        ${SUITES:-} || failed=1
fi
exit $failed
