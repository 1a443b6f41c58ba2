"""Broken drivers: modules, DKMS, packages of two versions or kinds, and what NVIDIA's installer left."""

from __future__ import annotations

from tests.lab.broken import TORCH, Broken, trusting
from tests.lab.debs import Deb, File
from tests.lab.modules import DKMS, KERNEL, OPEN, module

OLD, NEW = "570.86.15", "570.124.06"
_UPDATES = f"/lib/modules/{KERNEL}/updates/dkms"


def _driver(*, postinst: str = "", version: str = NEW) -> tuple[Deb, ...]:
    scripts = {"postinst": f'#!/bin/sh\nset -e\n[ "$1" = configure ] || exit 0\n{postinst}\n'} if postinst else {}
    return (
        Deb("nvidia-dkms-570", f"{version}-0ubuntu1", "amd64", 60, {}, {}, scripts),
        Deb("nvidia-utils-570", f"{version}-0ubuntu1", "amd64", 60),
    )


def _tree(*versions: str) -> dict[str, bytes]:
    found = {"/usr/sbin/dkms": DKMS.encode()}
    for version in versions:
        found[f"/var/lib/dkms/nvidia/{version}/source/dkms.conf"] = f'PACKAGE_NAME="nvidia"\nPACKAGE_VERSION="{version}"\n'.encode()
        found[f"/var/lib/dkms/nvidia/{version}/source/nvidia.ko"] = module(version)
    return found


_INSTALL = "dpkg -i /var/cache/apt/archives/nvidia-*570*.deb"
_PARTS = (
    "nvidia-driver-cuda", "nvidia-driver-libs", "nvidia-alternative", "nvidia-modprobe", "nvidia-persistenced", "nvidia-kernel-support",
    "firmware-nvidia-gsp", "nvidia-driver-bin",
)  # fmt: skip
_ONE_NEWER = "apt-get -q download nvidia-driver-libs=580.82.07-1; dpkg -i --force-all nvidia-driver-libs_*.deb; rm nvidia-driver-libs_*.deb"

_RUN, _LIBS = "550.54.14", "/usr/lib/x86_64-linux-gnu"
_VIDEO = f"/lib/modules/{KERNEL}/kernel/drivers/video"
_RUN_FILES = {
    f"{_LIBS}/libnvidia-ml.so.{_RUN}": b"old ml",
    f"{_LIBS}/libcuda.so.{_RUN}": b"old cuda",
    "/usr/bin/nvidia-settings": b"#!/bin/sh\necho old\n",
    f"{_VIDEO}/nvidia.ko": module(_RUN),
}
_UNINSTALL = f"""#!/bin/sh
# As NVIDIA's does: what its list names goes away, then its own traces.
[ "$1" = --silent ] || exit 1
sed -n 's,^1: ,,p' /var/lib/nvidia/log | xargs rm -f
rm -rf /var/lib/nvidia /var/log/nvidia-installer.log /usr/bin/nvidia-uninstall
depmod {KERNEL}
"""
_ON_DISK = f"modinfo -k {KERNEL} -F"
_MODULE_ALONE = "apt-get -q update; apt-get -qy install"

DRIVER = (
    Broken(
        "closed-for-blackwell",
        "gpu-needs-open-module",
        files=trusting(),
        script=f"{_MODULE_ALONE} linux-headers-amd64 nvidia-kernel-dkms={NEW}-1 nvidia-kernel-support={NEW}-1 nvidia-driver-cuda={NEW}-1",
        proves=f'[ "$({_ON_DISK} license nvidia)" = "{OPEN}" ] && [ "$({_ON_DISK} version nvidia)" = {NEW} ]',
        hardware="rtx5090-u2404-fresh",
        long=False,
    ),
    Broken(
        "open-for-pascal",
        "gpu-unsupported-by-open-module",
        files=trusting(),
        script=f"{_MODULE_ALONE} linux-headers-amd64 nvidia-kernel-open-dkms={NEW}-1 nvidia-kernel-support={NEW}-1",
        proves=f'[ "$({_ON_DISK} license nvidia)" = NVIDIA ] && [ "$({_ON_DISK} version nvidia)" = {NEW} ]',
        hardware="gtx1080ti-u1804",
    ),
    Broken(
        "installer-under-packages",
        "module-from-other-install",
        files={
            **trusting(), **_RUN_FILES, "/usr/sbin/dkms": DKMS.encode(),
            "/usr/bin/nvidia-uninstall": _UNINSTALL.encode(),
            "/var/lib/nvidia/log": "".join([f"{_RUN}\nNVIDIA driver\n", *(f"1: {path}\n" for path in _RUN_FILES)]).encode(),
            "/var/log/nvidia-installer.log": f"nvidia-installer log file\ninstaller version: {_RUN}\n".encode(),
        },
        # The headers came after the packages, so that nothing was built and the installer's module stayed the only one.
        script=f"depmod {KERNEL}; {_MODULE_ALONE} nvidia-kernel-dkms={NEW}-1 nvidia-kernel-support={NEW}-1 nvidia-driver-cuda={NEW}-1 "
        f"nvidia-driver-libs={NEW}-1; apt-get -qy install linux-headers-amd64",
        proves=f'[ "$({_ON_DISK} version nvidia)" = {NEW} ] && [ ! -e {_LIBS}/libcuda.so.{_RUN} ] && [ ! -e /usr/bin/nvidia-uninstall ]',
        long=False,
    ),
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
        "failing-script",
        "dkms-tree-stale-entry",
        files={**_tree(NEW), f"/lib/modules/{KERNEL}/build/Makefile": b"", f"/var/lib/dkms/nvidia/{OLD}/{KERNEL}/x86_64/x": b""},
        debs=_driver(postinst=f"dkms install nvidia/{NEW} -k {KERNEL}"),
        script=_INSTALL,
        proves="dpkg -s nvidia-dkms-570 | grep -q 'install ok installed'",
        long=False,
    ),
    Broken(
        "two-versions",
        "partial-driver-upgrade",
        files=trusting(),
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
        "memory-management",
        "uvm-hmm-breaks-cuda-init",
        log="echo 'cuInit(0) failed: CUDA_ERROR_NOT_INITIALIZED (3): initialization error'; "
        "echo 'torch.cuda.is_available() Error 3: initialization error'",
        proves="grep -q uvm_disable_hmm=1 /etc/modprobe.d/*",
        unproven=TORCH,
    ),
    Broken(
        "counters",
        "operation-needs-admin-rights",
        log="echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance "
        "Counters on the target device 0.'",
        proves="grep -q NVreg_RestrictProfilingToAdminUsers=0 /etc/modprobe.d/*",
        unproven="nvidia-smi --query-compute-apps=pid,name --format=csv",
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
)  # fmt: skip
