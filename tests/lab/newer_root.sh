#!/bin/bash
# newer_root.sh TARGET REPOSITORIES ARCHIVE - make a small Debian 13 root, whose apt verifies with Sequoia.
#
# REPOSITORIES  what tests.lab.rebound built: keys and certificates come from there
set -euo pipefail

target=$1 repositories=$2 archive=$3
making=$target.$$
trap 'rm -rf --one-file-system -- "$making"' EXIT

mkdir -p "$making"
# As a stream: the target is never one of mmdebstrap's own mount points.
mmdebstrap --quiet --mode=root --variant=minbase --include=ca-certificates,kmod,procps trixie - "$archive" |
    tar -C "$making" --numeric-owner --xattrs -xf -

echo force-unsafe-io >"$making/etc/dpkg/dpkg.cfg.d/lab"
printf 'Acquire::Languages "none";\n' >"$making/etc/apt/apt.conf.d/90lab"
echo lab >"$making/etc/hostname"
printf '127.0.0.1 localhost lab developer.download.nvidia.com\n' >"$making/etc/hosts"
: >"$making/etc/resolv.conf"
rm -f "$making/etc/apt/sources.list" "$making"/etc/apt/sources.list.d/*
mkdir -p "$making/etc/lab" "$making/lib/modules/6.12.0-1-amd64"
cp "$repositories/tls/ca.crt" "$making/usr/local/share/ca-certificates/lab.crt"
chroot "$making" update-ca-certificates >/dev/null 2>&1
rm -rf "$making"/var/lib/apt/lists/* "$making"/var/cache/apt/*.bin "$making"/var/cache/apt/archives/*.deb
chmod 755 "$making"
mv -- "$making" "$target"
