#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
#
# Real drivers for a machine without a GPU, to test "driver present, no device": cuInit(0) is 100 there and
# nvmlInit_v2() is 9, yet cuGetProcAddress works.
#
#   libcuda.sh DIR    unpack Debian's libcuda, libnvidia-ml and nvidia-smi into DIR/MAJOR; print "MAJOR path-of-libcuda.so.1"
#
# Each DIR/MAJOR is good as an LD_LIBRARY_PATH. A Debian machine is needed, but neither root nor an installation.
set -euo pipefail
shopt -s inherit_errexit

[ $# -eq 1 ] || { sed -nE '/^#   /s/^# *//p' "$0" >&2; exit 2; }
DIR=$(realpath -m "$1")
mkdir -p "$DIR"
exec 9> "$DIR/.lock" && flock 9 # two at once would unpack over each other

# Downloads packages of one Debian suite with an apt state of its own: the host's apt is untouched, and the
# empty status file keeps apt from thinking that anything is installed.
download() { # SUITE PACKAGE...
    local suite=$1 apt=$DIR/apt/$1 uri
    shift
    mkdir -p "$apt"/{state/lists/partial,cache/archives/partial,debs}
    : > "$apt/status"
    # The mirror is the one that the host uses for its own release; only suite and component differ.
    uri=$(apt-get update --print-uris |
        sed -nE "s#^'(.*)/dists/$(. /etc/os-release; echo "$VERSION_CODENAME")/InRelease'.*#\1#p" | head -n 1)
    [ -n "$uri" ] || { echo "libcuda.sh: apt knows no Debian mirror" >&2; return 1; }
    printf '%s\n' 'Types: deb' "URIs: $uri" "Suites: $suite" 'Components: non-free' \
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
    rm -f "$apt"/debs/*
    (cd "$apt/debs" && APT_CONFIG=$apt/apt.conf apt-get -q download "$@" >&2)
}

# bookworm had 535 and trixie 550 when this was written; the archive says what they have now, hence the
# directory is named after what came. The stamp DIR/.SUITE holds that name and is written last.
for suite in bookworm trixie; do
    major=$(cat "$DIR/.$suite" 2> /dev/null || true)
    if [ -z "$major" ] || [ ! -x "$DIR/$major/nvidia-smi" ]; then
        download "$suite" libcuda1 libnvidia-ml1 nvidia-smi
        debs=$DIR/apt/$suite/debs
        major=$(dpkg-deb -f "$debs"/libcuda1_*.deb Version)
        major=${major%%.*} major=${major##*:}
        rm -rf "${DIR:?}/$major" "$debs/root"
        for deb in "$debs"/*.deb; do dpkg -x "$deb" "$debs/root"; done
        mkdir "$DIR/$major"
        find "$debs/root" \( -name '*.so*' -o -path '*/nvidia/current/nvidia-smi' \) -exec mv -t "$DIR/$major" {} +
        [ -e "$DIR/$major/libcuda.so.1" ] && [ -e "$DIR/$major/libnvidia-ml.so.1" ] && [ -x "$DIR/$major/nvidia-smi" ]
        echo "$major" > "$DIR/.$suite"
        rm -r "$DIR/apt"
    fi
    echo "$major $DIR/$major/libcuda.so.1"
done
