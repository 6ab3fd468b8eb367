#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
#
# The whole round on a machine with an NVIDIA GPU: build the wheel, run the main job and every test on the real driver, and
# time the hot calls. Nothing is fetched when OFFLINE=1: then Python must already find cffi, numpy, pytest, setuptools,
# pycparser, cuda-pathfinder, NVRTC, libNVVM, nvJitLink, and cuda.h through CUDA_PATH or the header wheel.
#
#     PYTHON=python3 PYPY=/path/to/pypy OFFLINE=1 BENCHMARKS=quick tests/gpu.sh
#
# BENCHMARKS is quick or full, and ONLY a pattern for its rows; other libraries are timed too where Python finds them.
# JOBS=6 runs the tests in six processes at once (pytest-xdist), TESTS selects among them as pytest's -k does.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
PYTHON=${PYTHON:-python3}
OUTPUT=${OUTPUT:-$(mktemp -d)}
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
export CUDA_CORE_CFFI_DRIVER=system PYTHONUNBUFFERED=1
# an NVRTC that came without CUDA's headers for kernels finds those of a toolkit
export CUDA_TEST_KERNEL_INCLUDE_DIRS=${CUDA_TEST_KERNEL_INCLUDE_DIRS:-/usr/local/cuda/include:/usr/local/cuda/include/cccl}
summary=()
failed=0

# Build for an interpreter and test with it: NAME INTERPRETER [PYTHONPATH]
round() {
    local name=$1 python=$2 site=$WORK/$1
    export PYTHONPATH=${3:-}
    local -a isolation=()
    [ -z "${OFFLINE:-}" ] || isolation=(--no-build-isolation --no-index)
    echo "=== $name: $("$python" --version 2>&1 | head -n 1)"
    rm -rf build
    if ! "$python" -m pip wheel -q --no-deps "${isolation[@]}" -w "$WORK/dist-$name" . ||
        ! "$python" -m pip install -q --no-deps --no-index --target "$site" "$WORK/dist-$name"/*.whl; then
        summary+=("$name: the build failed")
        failed=1
        return
    fi
    (
        export PYTHONPATH=$site${PYTHONPATH:+:$PYTHONPATH}
        export CUDA_CACHE_PATH=$WORK/cache-$name # what the driver compiles is not that of an earlier run
        cd "$WORK" || exit 1
        "$python" -m cuda_core_cffi
        broken=0
        for example in "$OLDPWD"/examples/*.py; do
            "$python" "$example" || { echo "=== ${example##*/} failed"; broken=1; }
        done
        # the log names each test; one that takes too long shows where all its threads are; what failed is shown at the end
        timeout --signal=INT --kill-after=30 "${TEST_SECONDS:-1800}" "$python" -m pytest -v --tb=short -p no:cacheprovider -o faulthandler_timeout=150 \
            --rootdir "$OLDPWD" -c "$OLDPWD/pyproject.toml" "$OLDPWD/tests" ${TESTS:+-k "$TESTS"} \
            ${JOBS:+-n "$JOBS" --dist loadfile} > "$OUTPUT/$name.log" 2>&1
        status=$?
        sed -n '/^FAILED\|^ERROR\|^Timeout/p; $p' "$OUTPUT/$name.log"
        echo "=== every test of $name, by name: $OUTPUT/$name.log"
        "$python" "$OLDPWD/tests/support/conformance.py" > "$OUTPUT/interoperability-$name.md"
        exit $((status || broken))
    ) || failed=1
    summary+=("$name: $(tail -n 1 "$OUTPUT/$name.log" 2>/dev/null || echo 'the main job failed')")
}

path=${PYTHONPATH:-}
round cpython "$PYTHON" "$path"
# what is on the path for CPython would hide PyPy's own cffi
[ -z "${PYPY:-}" ] || round pypy "$PYPY" ""

if [ -n "${BENCHMARKS:-}" ]; then
    echo "=== benchmarks"
    options=(--output "$OUTPUT/benchmarks.json" ${PYPY:+--pypy "$PYPY" --pypy-path "$WORK/pypy"})
    [ "$BENCHMARKS" = full ] || options+=(--quick)
    export PYTHONPATH=$WORK/cpython:$path
    "$PYTHON" benchmarks/__main__.py "${options[@]}" ${ONLY:+--only "$ONLY"} || failed=1
    if "$PYTHON" -c "import matplotlib" 2>/dev/null; then
        "$PYTHON" benchmarks/__main__.py chart "$OUTPUT/benchmarks.json" "$OUTPUT/benchmarks.svg" || failed=1
    fi
fi
printf '%s\n' "=== summary" "${summary[@]}"
exit $failed
