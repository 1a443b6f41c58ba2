#!/bin/bash
# real_root.sh TARGET ARCHIVE - make a Debian 12 root with a kernel and its headers, and the whole archive.
#
# For the driver that Debian itself ships: main, contrib, non-free and the security updates.
# Debian 13's lists are there too, pinned so low that nothing comes from them unasked.
set -euo pipefail

target=$1 archive=$2 suite=bookworm newer=trixie
components='main contrib non-free non-free-firmware'
here=$(dirname "$(readlink -f "$0")")
making=$target.$$
trap 'rm -rf --one-file-system -- "$making"' EXIT

mkdir -p "$making"
# As a stream: the target is never one of mmdebstrap's own mount points.
mmdebstrap --quiet --mode=root --variant=minbase --components="${components// /,}" \
    --include=ca-certificates,kmod,procps "$suite" - "$archive" |
    tar -C "$making" --numeric-owner --xattrs -xf -

printf '#!/bin/sh\nexit 101\n' >"$making/usr/sbin/policy-rc.d"
chmod 755 "$making/usr/sbin/policy-rc.d"
echo force-unsafe-io >"$making/etc/dpkg/dpkg.cfg.d/lab"
printf 'Acquire::Languages "none";\n' >"$making/etc/apt/apt.conf.d/90lab"
echo lab >"$making/etc/hostname"
printf '127.0.0.1 localhost lab\n' >"$making/etc/hosts"
: >"$making/etc/resolv.conf"
{
    echo "deb $archive $suite $components"
    echo "deb $archive $suite-updates $components"
    echo "deb $archive-security $suite-security $components"
    echo "deb $archive $newer $components"
} >"$making/etc/apt/sources.list"
rm -f "$making"/etc/apt/sources.list.d/*
printf 'Package: *\nPin: release n=%s\nPin-Priority: 100\n' "$newer" >"$making/etc/apt/preferences.d/lab"
mkdir -p "$making/etc/lab"

bash "$here/enter.sh" --write --network "$making" -- sh -ec '
    apt-get -qq -o APT::Update::Error-Mode=any update
    DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install \
        linux-image-amd64 linux-headers-amd64 initramfs-tools sudo </dev/null >/dev/null
    apt-get clean'
chmod 755 "$making"
mv -- "$making" "$target"
