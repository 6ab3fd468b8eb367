#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
#
# Build the package and the simulated driver under AddressSanitizer and UndefinedBehaviorSanitizer, in a temporary folder,
# and run a command with them: by default the fuzzer of the public API, for ten minutes.
#
#     tests/sanitize.sh
#     tests/sanitize.sh python tests/fuzz_api.py --seconds 60 --seed 1
#     PYTHON=python3.12 OFFLINE=1 SITE=/tmp/sanitized tests/sanitize.sh python -P -m pytest -q tests/memory/test_buffer.py
#
# PYTHON (default: python3) has to find cffi, numpy and cuda-pathfinder; the command finds it as `python`. With OFFLINE=1 it
# has to find what the build needs too. SITE keeps the build in a folder, and uses it if it is there. It needs gcc. (-P, or
# python -m would import the package from here.)
#
# In the environment of the command:
#   detect_leaks=0                the interpreter leaves memory allocated at its end, by design
#   allocator_may_return_null=1   an array that is too large is a MemoryError, not the end of the process
#   abort_on_error=1              the fuzzer tells a report from an exit by the signal
#   PYTHONMALLOC=malloc           Python objects are blocks of their own, so that a use after free of one is seen
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
SITE=${SITE:-$WORK/site}

if [ ! -d "$SITE/cuda_core_cffi" ]; then
    # a copy: objects compiled without the sanitizers would be used again
    mkdir "$WORK/source"
    cp -r build_ffi.py pyproject.toml MANIFEST.in README.md LICENSE include cuda_core_cffi "$WORK/source"
    find "$WORK/source" -name '*.so' -delete
    isolation=()
    [ -z "${OFFLINE:-}" ] || isolation=(--no-build-isolation --no-index)
    CUDA_CORE_CFFI_SANITIZE=address,undefined "$PYTHON" -m pip install -q --no-deps "${isolation[@]}" --target "$SITE" \
        "$WORK/source"
fi

mkdir "$WORK/bin"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$(command -v "$PYTHON")" > "$WORK/bin/python"
chmod +x "$WORK/bin/python"
[ $# -gt 0 ] || set -- python tests/fuzz_api.py --seconds 600
library() { gcc -print-file-name="$1"; }
export PATH=$WORK/bin:$PATH PYTHONPATH=$SITE${PYTHONPATH:+:$PYTHONPATH} PYTHONMALLOC=malloc
export CUDA_CORE_CFFI_DRIVER=simulator CUDA_CORE_CFFI_SANITIZED=1
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:abort_on_error=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}
export UBSAN_OPTIONS=print_stacktrace=1:abort_on_error=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}
LD_PRELOAD="$(library libasan.so):$(library libubsan.so)" "$@"
