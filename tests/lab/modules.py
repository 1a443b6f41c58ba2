"""Kernel modules and their builder, as far as a lab without a compiler can have them."""

from __future__ import annotations

import struct

KERNEL = "6.1.0-32-amd64"
OPEN = "Dual MIT/GPL"
"""The licence by which the open modules are known; the closed ones say NVIDIA."""

DKMS = r"""#!/bin/sh
# dkms 3, as far as a lab without a compiler can have it: entries are folders, a module is copied from the sources.
tree=/var/lib/dkms; [ "$1" = autoinstall ] && set -- install nvidia/$(ls $tree/nvidia | tail -n 1) -k "${3:-$(ls /lib/modules | tail -n 1)}"
verb=$1; shift; [ "$1" = --force ] && shift
name=${1%%/*}; version=${1##*/}; kernel=$3
for at in $tree/*/*; do
    [ -d "$at" ] && [ ! -e "$at/source/dkms.conf" ] && {
        echo "Error! Could not locate dkms.conf file." >&2
        echo "File: $at/source/dkms.conf does not exist." >&2
        [ "$verb" = status ] && echo "$(echo "${at#$tree/}" | tr / ' ' | sed 's, ,/,'): broken" || exit 4
    }
done
case $verb in
status)
    for at in $tree/*/*; do
        [ -e "$at/source/dkms.conf" ] || continue
        entry=${at#$tree/}; built=
        for k in "$at"/*/x86_64; do [ -d "$k" ] && built=1 && echo "$entry, $(basename "$(dirname "$k")"), x86_64: installed"; done
        [ -n "$built" ] || echo "$entry: added"
    done ;;
install)
    [ -e "/lib/modules/$kernel/build" ] || { echo "Error! Your kernel headers for kernel $kernel cannot be found." >&2; exit 1; }
    mkdir -p "$tree/$name/$version/$kernel/x86_64" "/lib/modules/$kernel/updates/dkms"
    cp "$tree/$name/$version/source/nvidia.ko" "/lib/modules/$kernel/updates/dkms/nvidia.ko"; depmod "$kernel" ;;
uninstall)
    rm -r "$tree/$name/$version/$kernel" "/lib/modules/$kernel/updates/dkms"/nvidia*.ko; depmod "$kernel" ;;
esac
"""


def module(version: str, licence: str = "NVIDIA", kernel: str = KERNEL) -> bytes:
    """Return the smallest file that modinfo reads a version from: an ELF object with one section of words."""
    words = f"version={version}\0license={licence}\0description=stand-in\0vermagic={kernel} SMP\0".encode()
    names = b"\0.modinfo\0.shstrtab\0.strtab\0.symtab\0"
    body, at = bytearray(64), {}
    for name, data in (("modinfo", words), ("shstrtab", names), ("strtab", b"\0"), ("symtab", bytes(24))):
        body += bytes(-len(body) % 8)
        at[name] = (len(body), len(data))
        body += data
    body += bytes(-len(body) % 8)
    table = len(body)

    def section(name: int, kind: int, place: tuple[int, int], link: int = 0, entry: int = 0) -> bytes:
        return struct.pack("<IIQQQQIIQQ", name, kind, 2 if kind == 1 else 0, 0, *place, link, 0, 8, entry)

    body += bytes(64) + section(1, 1, at["modinfo"]) + section(10, 3, at["shstrtab"]) + section(20, 3, at["strtab"])
    body += section(28, 2, at["symtab"], link=3, entry=24)
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, table, 0, 64, 0, 0, 64, 5, 2)
    body[:64] = head
    return bytes(body)


def library(name: str) -> bytes:
    """Return the smallest file that ldconfig takes for the shared library of this name: it tells its name, and holds nothing."""
    words = b"\0" + name.encode() + b"\0"
    at = 64 + 2 * 56
    dynamic, strings = at, at + 4 * 16
    entries = ((5, strings), (10, len(words)), (14, 1), (0, 0))
    size = strings + len(words)
    segments = struct.pack("<IIQQQQQQ", 1, 4, 0, 0, 0, size, size, 4096)
    segments += struct.pack("<IIQQQQQQ", 2, 4, dynamic, dynamic, dynamic, 4 * 16, 4 * 16, 8)
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 64, 0, 0)
    return head + segments + b"".join(struct.pack("<QQ", *entry) for entry in entries) + words
