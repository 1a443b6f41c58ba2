"""Systems that are broken on purpose, as people break them: by real apt, dpkg and DKMS's files, each with the cause to be found."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.lab.catalogue import KERNEL, NVIDIA_URL
from tests.lab.debs import Deb, File, pack
from tests.lab.lab import LabMachine

OLD, NEW = "570.86.15", "570.124.06"
_UPDATES = f"/lib/modules/{KERNEL}/updates/dkms"

_DKMS = r"""#!/bin/sh
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
    rm -r "$tree/$name/$version/$kernel" "/lib/modules/$kernel/updates/dkms/nvidia.ko"; depmod "$kernel" ;;
esac
"""


def module(version: str) -> bytes:
    """Return the smallest file that modinfo reads a version from: an ELF object with one section of words."""
    words = f"version={version}\0license=NVIDIA\0description=stand-in\0vermagic={KERNEL} SMP\0".encode()
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


@dataclass(frozen=True)
class Broken:
    """One broken system: files that lie there, a script that breaks it, and a command that a person would paste the output of."""

    id: str
    cause: str
    script: str = "true"
    files: Mapping[str, bytes] = field(default_factory=dict)
    debs: tuple[Deb, ...] = ()
    """Packages that lie in apt's cache."""
    log: str | None = None
    proves: str = "true"
    """A script that ends well only once it is repaired."""
    long: bool = True

    def make(self, machine: LabMachine) -> str | None:
        """Break the system, and return the log that a person would paste."""
        for path, data in self.files.items():
            place = machine.path(path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
            place.chmod(0o755 if data.startswith(b"#!") else 0o644)
        for deb in self.debs:
            place = machine.path(f"/var/cache/apt/archives/{deb.file_name}")
            place.write_bytes(pack(deb))
        machine.run("sh", "-c", self.script)
        if self.log is None:
            return None
        told = machine.run("sh", "-c", f"export LC_ALL=C; {self.log}")
        return told.stdout + told.stderr


def _driver(*, postinst: str = "", version: str = NEW) -> tuple[Deb, ...]:
    scripts = {"postinst": f'#!/bin/sh\nset -e\n[ "$1" = configure ] || exit 0\n{postinst}\n'} if postinst else {}
    return (
        Deb("nvidia-dkms-570", f"{version}-0ubuntu1", "amd64", 60, {}, {}, scripts),
        Deb("nvidia-utils-570", f"{version}-0ubuntu1", "amd64", 60),
    )


def _tree(*versions: str) -> dict[str, bytes]:
    found = {"/usr/sbin/dkms": _DKMS.encode()}
    for version in versions:
        found[f"/var/lib/dkms/nvidia/{version}/source/dkms.conf"] = f'PACKAGE_NAME="nvidia"\nPACKAGE_VERSION="{version}"\n'.encode()
        found[f"/var/lib/dkms/nvidia/{version}/source/nvidia.ko"] = module(version)
    return found


_INSTALL = "dpkg -i /var/cache/apt/archives/nvidia-*570*.deb"
_CONF = Deb("lab-half", "1.0", "all", 60, {}, {"/etc/lab-half.conf": File(b"level = 1\n")})
_KEYRING = "/usr/share/keyrings/lab-debian.gpg"


def _source(url: str, key: str) -> bytes:
    return f"Types: deb\nURIs: {url}\nSuites: /\nSigned-By: {key}\n".encode()


def _trusting(url: str = NVIDIA_URL) -> dict[str, bytes]:
    return {"/etc/apt/sources.list.d/nvidia.list": f"deb [trusted=yes] {url} /\n".encode()}


_PARTS = (
    "nvidia-driver-cuda", "nvidia-driver-libs", "nvidia-alternative", "nvidia-modprobe", "nvidia-persistenced", "nvidia-kernel-support",
    "firmware-nvidia-gsp", "nvidia-driver-bin",
)  # fmt: skip
_ONE_NEWER = "apt-get -q download nvidia-driver-libs=580.82.07-1; dpkg -i --force-all nvidia-driver-libs_*.deb; rm nvidia-driver-libs_*.deb"

_WEAK = (
    f"W: OpenPGP signature verification failed: {NVIDIA_URL}  InRelease: Sub-process /usr/bin/sqv returned an error code (1), "
    "error message is: Signing key on EB693B3035CD5710E231E123A4B469963BF863CC is not bound: No binding signature at time because: "
    "Policy rejected non-revocation signature because: SHA1 is not considered secure since 2026-02-01T00:00:00Z"
)

BROKEN = (
    Broken(
        "stale-module",
        "stale-module-on-disk",
        files={**_tree(OLD, NEW), f"/lib/modules/{KERNEL}/build/Makefile": b"", f"{_UPDATES}/nvidia.ko": module(OLD)},
        debs=_driver(),
        script=f"{_INSTALL}; mkdir -p /var/lib/dkms/nvidia/{OLD}/{KERNEL}/x86_64; depmod {KERNEL}",
        proves=f'[ "$(modinfo -k {KERNEL} -F version nvidia)" = {NEW} ]',
        long=False,
    ),
    Broken(
        "no-headers",
        "kernel-headers-missing",
        files=_tree(NEW),
        debs=_driver(),
        script=_INSTALL,
        proves=f'[ "$(modinfo -k {KERNEL} -F version nvidia)" = {NEW} ]',
        long=False,
    ),
    Broken(
        "interrupted",
        "dpkg-interrupted",
        debs=(_CONF,),
        script="dpkg --unpack /var/cache/apt/archives/lab-half_1.0_all.deb",
        proves="dpkg -s lab-half | grep -q 'install ok installed'",
        long=False,
    ),
    Broken(
        "failing-script",
        "dkms-tree-stale-entry",
        files={**_tree(NEW), f"/lib/modules/{KERNEL}/build/Makefile": b"", f"/var/lib/dkms/nvidia/{OLD}/{KERNEL}/x86_64/x": b""},
        debs=_driver(postinst=f"dkms install nvidia/{NEW} -k {KERNEL}"),
        script=_INSTALL,
        proves="dpkg -s nvidia-dkms-570 | grep -q 'install ok installed'",
        long=False,
    ),
    Broken(
        "wrong-key",
        "apt-repo-key-rotated",
        files={"/etc/apt/sources.list.d/cuda.sources": _source(NVIDIA_URL, "/usr/share/keyrings/other.gpg")},
        script="cp /usr/share/keyrings/debian-archive-bookworm-stable.gpg /usr/share/keyrings/other.gpg",
        log="apt-get update",
        proves="apt-get -o APT::Update::Error-Mode=any update",
        long=False,
    ),
    Broken(
        "signed-by-twice",
        "apt-signed-by-conflict",
        files={
            "/etc/apt/sources.list.d/a.list": f"deb [signed-by={_KEYRING}] {NVIDIA_URL} /\n".encode(),
            "/etc/apt/sources.list.d/b.sources": _source(NVIDIA_URL, "/etc/apt/keyrings/gone.gpg"),
        },
        proves="apt-get check",
        long=False,
    ),
    Broken(
        "held-library",
        "held-package-blocks-install",
        files=_trusting(),
        script="apt-get -q update; apt-get -qy install libnccl2=2.26.2-1+cuda12.8; apt-mark hold libnccl2",
        log="apt-get -s install libnccl-dev=2.28.3-1+cuda13.0",
        proves="apt-get -s install libnccl-dev=2.28.3-1+cuda13.0",
        long=False,
    ),
    Broken(
        "other-release",
        "repo-for-other-distro",
        files={"/etc/apt/sources.list.d/cuda.sources": _source(NVIDIA_URL.replace("debian12", "ubuntu2204"), _KEYRING)},
        proves="grep -rq repos/debian12 /etc/apt/sources.list.d/ && ! ls /etc/apt/sources.list.d/cuda.sources",
        long=False,
    ),
    Broken(
        "two-versions",
        "partial-driver-upgrade",
        files=_trusting(),
        script=f"apt-get -q update; apt-get -qy install {' '.join(f'{name}=570.*' for name in _PARTS)}; cd /tmp; {_ONE_NEWER}",
        log="echo 'Failed to initialize NVML: Driver/library version mismatch'; echo 'NVML library version: 580.82'",
        proves="! dpkg -l nvidia-driver-cuda | grep '^ii.* 570'",
    ),
    Broken(
        "foreign-file",
        "driver-package-file-conflict",
        debs=(
            Deb("nvidia-utils-550", "550.1-1", "amd64", 60, {}, {"/usr/bin/nvidia-smi": File(b"old", 0o755)}),
            Deb("nvidia-utils-570", "570.1-1", "amd64", 60, {}, {"/usr/bin/nvidia-smi": File(b"new", 0o755)}),
        ),
        script="dpkg -i /var/cache/apt/archives/nvidia-utils-550*.deb",
        log="dpkg -i /var/cache/apt/archives/nvidia-utils-570*.deb",
        proves="! dpkg -l nvidia-utils-550 | grep ^ii",
    ),
    Broken(
        "library-path",
        "ld-library-path-shadows-bundled-libs",
        files={"/etc/profile.d/cuda.sh": b"export PATH=/usr/local/cuda/bin:$PATH\nexport LD_LIBRARY_PATH=/usr/local/cuda/lib64\n"},
        log="echo 'ImportError: /opt/e/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so: undefined symbol: cublasLtGetVersion, "
        "version libcublasLt.so.12'; echo 'env: LD_LIBRARY_PATH=/usr/local/cuda/lib64'",
        proves='[ -z "$(. /etc/profile.d/cuda.sh; echo $LD_LIBRARY_PATH)" ]',
    ),
    Broken(
        "hidden-cards",
        "cuda-visible-devices-hides-gpus",
        files={"/etc/environment": b'PATH="/usr/bin"\nCUDA_VISIBLE_DEVICES=""\n'},
        log="echo '$ echo \"[$CUDA_VISIBLE_DEVICES]\"'; echo 'CUDA_VISIBLE_DEVICES='; "
        "echo 'RuntimeError: No CUDA GPUs are available'",
        proves="! grep -q ^CUDA_VISIBLE /etc/environment",
    ),
    Broken(
        "memory-management",
        "uvm-hmm-breaks-cuda-init",
        log="echo 'cuInit(0) failed: CUDA_ERROR_NOT_INITIALIZED (3): initialization error'; "
        "echo 'torch.cuda.is_available() Error 3: initialization error'",
        proves="grep -q uvm_disable_hmm=1 /etc/modprobe.d/*",
    ),
    Broken(
        "counters",
        "operation-needs-admin-rights",
        log="echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance "
        "Counters on the target device 0.'",
        proves="grep -q NVreg_RestrictProfilingToAdminUsers=0 /etc/modprobe.d/*",
    ),
    Broken(
        "pinned-memory",
        "memlock-limit-too-low",
        log="echo 'node1:12:34 [0] misc/ibvwrap.cc:184 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory'; "
        "echo '$ ulimit -l'; echo 64",
        proves="grep -q memlock /etc/security/limits.d/*",
    ),
    Broken(
        "cache-on-the-way",
        "http-cache-corrupts-repo-data",
        log="echo 'W: GPG error: http://deb.debian.org/debian lab InRelease: The following signatures were "
        "invalid: BADSIG 871920D1991BC93C Lab'",
        proves="grep -q No-Cache /etc/apt/apt.conf.d/*",
    ),
    Broken(
        "no-terminal",
        "conffile-question-unanswered",
        debs=(Deb("lab-half", "1.0", "all", 60, {}, {"/etc/lab-half.conf": File(b"level = 1\n")}),
              Deb("lab-half", "1.1", "all", 60, {}, {"/etc/lab-half.conf": File(b"level = 2\n")})),
        script="dpkg -i /var/cache/apt/archives/lab-half_1.0_all.deb; echo 'level = 9' >/etc/lab-half.conf",
        log="dpkg -i /var/cache/apt/archives/lab-half_1.1_all.deb </dev/null",
        proves="dpkg -s lab-half | grep -q 'install ok installed' && grep -q 9 /etc/lab-half.conf",
    ),
    Broken(
        "other-key-and-file",
        "apt-repo-key-rotated",
        # The source stands in the one file for all, beside another archive that has to stay.
        files={"/etc/apt/sources.list": f"deb [signed-by={_KEYRING}] https://deb.debian.org/debian/lab/ /\ndeb {NVIDIA_URL} /\n".encode()},
        script="rm /etc/apt/sources.list.d/debian.sources",
        log="apt-get update",
        proves="apt-get -o APT::Update::Error-Mode=any update && grep -q '^deb .*lab' /etc/apt/sources.list",
    ),
    Broken(
        "stale-entry-alone",
        "dkms-tree-stale-entry",
        files={**_tree(NEW), f"/lib/modules/{KERNEL}/build/Makefile": b"", f"/var/lib/dkms/nvidia/{OLD}/{KERNEL}/x86_64/x": b""},
        debs=_driver(),
        script=_INSTALL,
        log=f"dkms autoinstall -k {KERNEL}",
        proves=f'[ "$(modinfo -k {KERNEL} -F version nvidia)" = {NEW} ]',
    ),
    Broken(
        "interrupted-upgrade",
        "dpkg-interrupted",
        debs=(_CONF, Deb("lab-half", "1.1", "all", 60, {}, {"/etc/lab-half.conf": File(b"level = 2\n")})),
        script="cd /var/cache/apt/archives; dpkg -i lab-half_1.0_all.deb; dpkg --unpack lab-half_1.1_all.deb",
        log="apt-get -s install lab-ok",
        proves="dpkg -s lab-half | grep -q 'install ok installed' && grep -q 2 /etc/lab-half.conf",
    ),
    Broken(
        "half-removed-conflict",
        "driver-package-file-conflict",
        debs=(
            Deb("nvidia-kernel-common-550", "550.1-1", "amd64", 60, {}, {"/lib/udev/rules.d/71-nvidia.rules": File(b"old")}),
            Deb("nvidia-kernel-common-570-server", "570.1-1", "amd64", 60, {}, {"/lib/udev/rules.d/71-nvidia.rules": File(b"new")}),
        ),
        script="dpkg -i /var/cache/apt/archives/nvidia-kernel-common-550*.deb",
        log="dpkg -i /var/cache/apt/archives/nvidia-kernel-common-570*.deb",
        proves="! dpkg -l nvidia-kernel-common-550 | grep ^ii",
    ),
    Broken(
        "full-disk",
        "disk-full-during-install",
        debs=(Deb("lab-large", "1.0", "all", 8_000, {}, {"/usr/share/lab/zeros": File(size=8 << 20)}),),
        script="mkdir -p /usr/share/lab; mount -t tmpfs -o size=1M tmpfs /usr/share/lab",
        log="dpkg -i /var/cache/apt/archives/lab-large_1.0_all.deb",
        proves='[ -z "$(ls /var/cache/apt/archives/*.deb 2>/dev/null)" ]',
    ),
    Broken(
        "weak-key",
        "apt-repo-key-rotated",
        files={"/etc/apt/sources.list.d/cuda.list": f"deb [trusted=yes] {NVIDIA_URL} /\n".encode()},
        log=f"echo '{_WEAK}'",
        proves="apt-get -o APT::Update::Error-Mode=any update && ls /etc/apt/sources.list.d/cuda-debian12-x86_64.sources",
    ),
    Broken(
        "mirror-in-between",
        "repo-inconsistent-on-server",
        script="rm -rf /var/lib/apt/lists/*",
        log="echo 'E: Failed to fetch https://deb.debian.org/debian/lab/Packages.gz  File has unexpected size (1234 != 5678). "
        "Mirror sync in progress? [IP: 127.0.0.1 443]'",
        proves="ls /var/lib/apt/lists/*_Packages*",
    ),
)  # fmt: skip
