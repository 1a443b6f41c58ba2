#!/bin/bash
# root.sh TARGET REPOSITORIES - make a small Debian 12 root for the lab.
#
# TARGET        the folder to make; it must not exist
# REPOSITORIES  what tests.lab.repository built: key and certificates come from there
#
# The archive is the one that this machine's own apt uses (or $LAB_MIRROR). Nothing is mounted
# here, so a half-made folder can be removed without a thought.
set -euo pipefail

target=$1 repositories=$2 suite=bookworm
here=$(dirname "$(readlink -f "$0")")
making=$target.$$
trap 'rm -rf --one-file-system -- "$making"' EXIT

archive() {
    [ -n "${LAB_MIRROR:-}" ] && { echo "$LAB_MIRROR"; return; }
    # apt fills these in, not the shell.
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' 2>/dev/null |
        awk '$1 == "Debian" && $2 !~ /security/ { sub(/\/$/, "", $2); print $2; exit }'
}

mirror=$(archive)
[ -n "$mirror" ] || { echo "root.sh: apt knows no Debian archive here; set LAB_MIRROR" >&2; exit 3; }
mkdir -p "$making"
# As a stream: the target is never one of mmdebstrap's own mount points.
mmdebstrap --quiet --mode=root --variant=minbase --include=ca-certificates,kmod,procps "$suite" - "$mirror" |
    tar -C "$making" --numeric-owner --xattrs -xf -

printf '#!/bin/sh\nexit 101\n' >"$making/usr/sbin/policy-rc.d"
chmod 755 "$making/usr/sbin/policy-rc.d"
echo force-unsafe-io >"$making/etc/dpkg/dpkg.cfg.d/lab"
printf 'Acquire::Languages "none";\n' >"$making/etc/apt/apt.conf.d/90lab"
echo lab >"$making/etc/hostname"
printf '127.0.0.1 localhost lab developer.download.nvidia.com deb.debian.org\n' >"$making/etc/hosts"
: >"$making/etc/resolv.conf"

rm -f "$making/etc/apt/sources.list" "$making"/etc/apt/sources.list.d/*
cp "$repositories/debian.gpg" "$making/usr/share/keyrings/lab-debian.gpg"
printf 'Types: deb\nURIs: https://deb.debian.org/debian/lab/\nSuites: /\nSigned-By: /usr/share/keyrings/lab-debian.gpg\n' \
    >"$making/etc/apt/sources.list.d/debian.sources"
cp "$repositories/tls/ca.crt" "$making/usr/local/share/ca-certificates/lab.crt"
chroot "$making" update-ca-certificates >/dev/null 2>&1
rm -rf "$making"/var/lib/apt/lists/* "$making"/var/cache/apt/*.bin "$making"/var/cache/apt/archives/*.deb
mkdir -p "$making/etc/lab"

bash "$here/enter.sh" --write --serve "$repositories" "$making" -- sh -ec '
    apt-get -qq -o APT::Update::Error-Mode=any update
    DEBIAN_FRONTEND=noninteractive apt-get -qq -y install linux-image-amd64 </dev/null >/dev/null
    apt-get clean'
chmod 755 "$making"
mv -- "$making" "$target"
