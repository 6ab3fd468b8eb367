#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
#
# Build the package and the simulated driver under AddressSanitizer and UndefinedBehaviorSanitizer, in a temporary folder,
# and run a command with them: by default the fuzzer of the public API, for ten minutes. With SANITIZE=thread it is
# ThreadSanitizer, and the default command is the tests that start threads.
#
#     tests/sanitize.sh
#     SANITIZE=thread tests/sanitize.sh
#     tests/sanitize.sh python tests/fuzz_api.py --seconds 60 --seed 1
#     PYTHON=python3.12 OFFLINE=1 SITE=/tmp/sanitized tests/sanitize.sh python -P -m pytest -q tests/memory/test_buffer.py
#
# PYTHON (default: python3) has to find cffi, numpy and cuda-pathfinder; the command finds it as `python`. With OFFLINE=1 it
# has to find what the build needs too. SITE keeps the build in a folder, and uses it if it is there. It needs gcc. (-P, or
# python -m would import the package from here.)
#
# ThreadSanitizer knows no fences (gcc warns of it); only kernels on the simulated driver have them.
#
# In the environment of the command:
#   detect_leaks=0                the interpreter leaves memory allocated at its end, by design
#   allocator_may_return_null=1   an array that is too large is a MemoryError, not the end of the process
#   abort_on_error=1              the fuzzer tells a report from an exit by the signal
#   PYTHONMALLOC=malloc           Python objects are blocks of their own, so that a use after free of one is seen
#   exitcode=0                    a process that a test starts and that had a race ends as the test expects; the reports are
#                                 read at the end instead, and any of them fails the whole
#   die_after_fork=0              a child of fork() may start threads, as the package's own does there
#   tests/support/tsan.supp       what is not this package's, each with its reason
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
SITE=${SITE:-$WORK/site}
SANITIZE=${SANITIZE:-address,undefined}

if [ ! -d "$SITE/cuda_core_cffi" ]; then
    # a copy: objects compiled without the sanitizers would be used again
    mkdir "$WORK/source"
    cp -r build_ffi.py pyproject.toml MANIFEST.in README.md LICENSE include generator simulator cuda_core_cffi "$WORK/source"
    find "$WORK/source" -name '*.so' -delete
    isolation=()
    [ -z "${OFFLINE:-}" ] || isolation=(--no-build-isolation --no-index)
    CUDA_CORE_CFFI_SANITIZE=$SANITIZE "$PYTHON" -m pip install -q --no-deps "${isolation[@]}" --target "$SITE" \
        "$WORK/source"
fi

mkdir "$WORK/bin"
library() { gcc -print-file-name="$1"; }
executable=$("$PYTHON" -c "import sys; print(sys.executable)")
# ThreadSanitizer is for Python alone: it breaks dash, and what some compilers bring cannot stand randomized addresses
[ "$SANITIZE" != thread ] || executable="setarch -R env LD_PRELOAD=$(library libtsan.so) $executable"
printf '#!/bin/sh\nexec %s "$@"\n' "$executable" > "$WORK/bin/python"
chmod +x "$WORK/bin/python"
export PATH=$WORK/bin:$PATH PYTHONPATH=$SITE${PYTHONPATH:+:$PYTHONPATH} PYTHONMALLOC=malloc
export CUDA_CORE_CFFI_DRIVER=simulator CUDA_CORE_CFFI_SANITIZED=1
if [ "$SANITIZE" != thread ]; then
    [ $# -gt 0 ] || set -- python tests/fuzz_api.py --seconds 600
    export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:abort_on_error=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}
    export UBSAN_OPTIONS=print_stacktrace=1:abort_on_error=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}
    LD_PRELOAD="$(library libasan.so):$(library libubsan.so)" "$@"
    exit
fi
if [ $# -eq 0 ]; then
    mapfile -t modules < <(grep -rlE "threading|ThreadPool" tests --include="test_*.py" | sort)
    set -- python -P -m pytest -q -p no:cacheprovider "${modules[@]}"
fi
# NVRTC opens a library beside it, and ThreadSanitizer opens it in its place, without what NVRTC says on where to look
LD_LIBRARY_PATH=$("$PYTHON" -c 'import glob, site
print(":".join(folder for parent in site.getsitepackages() for folder in glob.glob(parent + "/nvidia/*/lib")))')
export LD_LIBRARY_PATH
TSAN_OPTIONS="exitcode=0:history_size=7:second_deadlock_stack=1:die_after_fork=0:suppressions=$PWD/tests/support/tsan.supp"
export TSAN_OPTIONS="$TSAN_OPTIONS:log_path=$WORK/report"
status=0
"$@" || status=$?
reports=("$WORK"/report.*)
if [ -e "${reports[0]}" ]; then
    cat "${reports[@]}"
    grep -h "^SUMMARY" "${reports[@]}" | sort | uniq -c | sort -rn
    status=1
fi
exit $status
