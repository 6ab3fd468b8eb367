#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
#
# Programs written for cuda.core on a machine with an NVIDIA GPU, once with cuda-core and once with this package in its
# place, and what differs. Python has to find both, numba-cuda, and what its tests need (pytest, filecheck, psutil, ml_dtypes).
#
#     PYTHON=python3 JOBS=8 SHARD=1/3 tests/gpu_clients.sh
#
# SHARD is the part of numba-cuda's suites that is run, each of which takes minutes.
set -uo pipefail
cd "$(dirname "$0")/clients"
PYTHON=${PYTHON:-python3}
export CUDA_CORE_CFFI_DRIVER=system PYTHONUNBUFFERED=1
failed=0
echo "=== a program that uses every area: cuda-core (<) and this package (>)"
diff <("$PYTHON" every_area.py 2>&1) <("$PYTHON" -m cuda_core_cffi.as_cuda_core every_area.py 2>&1) || failed=1
echo "=== numba-cuda's suites, part ${SHARD:-1/1}"
"$PYTHON" numba_cuda_suites.py --both --gpu --shard "${SHARD:-1/1}" --jobs "${JOBS:-4}" || failed=1
exit $failed
