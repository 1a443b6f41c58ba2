"""Broken sets of packages: of two archives, branches or architectures, held back, incomplete, or not for the card."""

from __future__ import annotations

from tests.lab.broken import Broken, archive, trusting
from tests.lab.broken_driver import NEW, OLD
from tests.lab.debs import Deb, File
from tests.lab.modules import DKMS, KERNEL, library, module

_MODULES = "/lib/modules"
_BEFORE = "6.1.0-30-amd64"
_BACKPORT, _OTHER = "570.133.20-1~bpo12+1", "550.163.01-0ubuntu1"


def _branch(branch: str, version: str) -> tuple[Deb, ...]:
    """Return the two packages of a branch's driver, which stands beside no other."""
    alone = {"Provides": "nvidia-driver-any", "Conflicts": "nvidia-driver-any"}
    utils = {"Depends": f"nvidia-utils-{branch} (= {version})", **alone}
    return (
        Deb(f"nvidia-driver-{branch}", version, "amd64", 60, utils),
        Deb(f"nvidia-utils-{branch}", version, "amd64", 60, {"Provides": "nvidia-utils-any", "Conflicts": "nvidia-utils-any"}),
    )


def _compute(version: str, architecture: str) -> Deb:
    """Return a library that both architectures may have, in one version only."""
    path = f"/usr/lib/{'i386' if architecture == 'i386' else 'x86_64'}-linux-gnu/libnvidia-compute-lab.so.{version}"
    return Deb("libnvidia-compute-570", f"{version}-0ubuntu1", architecture, 60, {"Multi-Arch": "same"}, {path: File(version.encode())})


SETS = (
    Broken(
        "two-archives",
        "two-repos-same-branch",
        files={
            **archive(
                "nvidia", "NVIDIA CUDA",
                Deb("nvidia-driver", f"{NEW}-1", "amd64", 60, {"Depends": f"nvidia-driver-libs (= {NEW}-1)"}),
                Deb("nvidia-driver-libs", f"{NEW}-1", "amd64", 60),
                Deb("nvidia-driver-cuda", f"{NEW}-1", "amd64", 60),
            ),
            **archive("backports", "Debian Backports", Deb("nvidia-driver-libs", _BACKPORT, "amd64", 60)),
        },
        script=f"apt-get -q update; apt-get -qy install nvidia-driver-cuda={NEW}-1",
        log="apt-get -s install nvidia-driver",
        proves="apt-get -s install nvidia-driver",
    ),
    Broken(
        "other-branch",
        "conflicting-driver-branch-blocks-install",
        files=archive("drivers", "Lab", *_branch("550", _OTHER), *_branch("570", f"{NEW}-0ubuntu1"),
                      Deb("cuda-drivers-570", f"{NEW}-0ubuntu1", "amd64", 10, {"Depends": f"nvidia-driver-570 (= {NEW}-0ubuntu1)"})),
        script="apt-get -q update; apt-get -qy install nvidia-driver-550; apt-get clean",
        log="apt-get -s --no-remove install cuda-drivers-570 nvidia-driver-550",
        proves="dpkg -s nvidia-driver-570 | grep -q 'install ok installed'",
    ),
    Broken(
        "held-driver",
        "held-package-blocks-install",
        files=trusting(),
        script=f"apt-get -q update; apt-get -qy install nvidia-driver-libs={NEW}-1; apt-mark hold nvidia-driver-libs",
        log="echo '$ apt-get install nvidia-driver'; apt-get -s install nvidia-driver",
        proves="dpkg -s nvidia-driver | grep -q 'install ok installed'",
    ),
    Broken(
        "two-architectures",
        "multiarch-driver-version-skew",
        files=archive("drivers", "Lab", *(_compute(version, one) for version in (OLD, NEW) for one in ("amd64", "i386"))),
        script="dpkg --add-architecture i386; apt-get -q update; "
        "apt-get -qy install libnvidia-compute-570=570.86.15-0ubuntu1 libnvidia-compute-570:i386=570.86.15-0ubuntu1",
        log=f"dpkg -i /srv/drivers/libnvidia-compute-570_{NEW}-0ubuntu1_amd64.deb",
        proves=f"[ $(dpkg-query -W -f '${{db:Status-Abbrev}} ${{Version}}\\n' libnvidia-compute-570 | grep -c '^ii *{NEW}') = 2 ]",
        stays=True,
    ),
    Broken(
        "old-card",
        "gpu-needs-legacy-driver",
        files={**trusting(), **archive("debian-470", "Debian", Deb("nvidia-tesla-470-driver", "470.256.02-2", "amd64", 60,
                                                                  {"Conflicts": "nvidia-driver, nvidia-driver-libs, nvidia-driver-cuda"}))},
        script=f"apt-get -q update; apt-get -qy install nvidia-driver-cuda={NEW}-1 nvidia-driver-libs={NEW}-1",
        log="echo 'NVRM: The NVIDIA Tesla K80 GPU installed in this system is'; "
        "echo 'NVRM:  supported through the NVIDIA 470.xx Legacy drivers. Please'; "
        "echo 'NVRM:  visit http://www.nvidia.com/object/unix.html for more'; "
        f"echo 'NVRM:  information.  The {NEW} NVIDIA driver will ignore'; echo 'NVRM:  this GPU.  Continuing probe...'",
        proves="dpkg -s nvidia-tesla-470-driver | grep -q 'install ok installed' && ! dpkg -s nvidia-driver-libs | grep ' ok installed'",
        hardware="k80x2-board-legacy470",
    ),
    Broken(
        "old-lists",
        "package-version-not-in-repo",
        files={**archive("libraries", "Lab", Deb("libnccl2", "2.26.2-1+cuda12.8", "amd64", 60)),
               **archive("newer", "Lab", Deb("libnccl2", "2.28.3-1+cuda13.0", "amd64", 60))},
        # The release came after the lists were fetched.
        script="rm /etc/apt/sources.list.d/newer.list; apt-get -q update; mv /srv/newer/* /srv/libraries/",
        log="apt-get -s install libnccl2=2.28.3-1+cuda13.0",
        proves="apt-get -s install libnccl2=2.28.3-1+cuda13.0",
    ),
    Broken(
        "tools-removed",
        "driver-utilities-package-missing",
        # An archive that every machine of the kind has, so that what it does not offer is known.
        files={**trusting(), **archive("debian", "Debian", Deb("apt", "2.6.0", "amd64", 60))},
        script=f"apt-get -q update; apt-get -qy install nvidia-driver-libs={NEW}-1 nvidia-driver-cuda={NEW}-1 "
        f"nvidia-kernel-support={NEW}-1; apt-get -qy remove nvidia-driver-cuda",
        log="echo '$ nvidia-smi'; sh -c nvidia-smi",
        proves="command -v nvidia-smi",
    ),
    Broken(
        "module-by-hand",
        "module-from-other-install",
        files={f"{_MODULES}/{KERNEL}/kernel/drivers/video/nvidia.ko": module("550.54.14"), **trusting(), "/usr/sbin/dkms": DKMS.encode()},
        # The headers came after the packages, so that nothing was built.
        script=f"depmod {KERNEL}; apt-get -q update; apt-get -qy install nvidia-kernel-dkms={NEW}-1 nvidia-kernel-support={NEW}-1 "
        f"nvidia-driver-cuda={NEW}-1 nvidia-driver-libs={NEW}-1; apt-get -qy install linux-headers-amd64",
        proves=f'[ "$(modinfo -k {KERNEL} -F version nvidia)" = {NEW} ] && [ ! -e {_MODULES}/{KERNEL}/kernel/drivers/video/nvidia.ko ]',
    ),
    Broken(
        "other-kernel-alone",
        "no-module-for-running-kernel",
        files={
            "/usr/sbin/dkms": DKMS.encode(),
            f"/var/lib/dkms/nvidia/{NEW}/source/dkms.conf": f'PACKAGE_NAME="nvidia"\nPACKAGE_VERSION="{NEW}"\n'.encode(),
            f"/var/lib/dkms/nvidia/{NEW}/source/nvidia.ko": module(NEW),
            f"/var/lib/dkms/nvidia/{NEW}/{_BEFORE}/x86_64/x": b"",
            f"{_MODULES}/{_BEFORE}/updates/dkms/nvidia.ko": module(NEW, kernel=_BEFORE),
            f"{_MODULES}/{KERNEL}/build/Makefile": b"",
        },
        debs=(Deb("nvidia-dkms-570", f"{NEW}-0ubuntu1", "amd64", 60),),
        script="dpkg -i /var/cache/apt/archives/nvidia-dkms-570*.deb",
        proves=f'[ "$(modinfo -k {KERNEL} -F version nvidia)" = {NEW} ]',
    ),
    Broken(
        "library-by-hand",
        "userspace-from-other-install",
        files={**trusting(), "/usr/local/nvidia/lib/libnvidia-ml.so.550.54.14": library("libnvidia-ml.so.1"),
               "/etc/ld.so.conf.d/00-nvidia.conf": b"/usr/local/nvidia/lib\n"},
        script=f"ldconfig; apt-get -q update; apt-get -qy install nvidia-driver-libs={NEW}-1",
        log="echo 'Failed to initialize NVML: Driver/library version mismatch'; echo 'NVML library version: 550.54'",
        proves="! ldconfig -p | grep /usr/local/nvidia",
    ),
    Broken(
        "two-compilers",
        "distro-nvcc-first-in-path",
        files={**trusting(), **archive("debian-nvcc", "Debian",
                                       Deb("nvidia-cuda-toolkit", "11.8.89~11.8.0-5~deb12u1", "amd64", 60, {},
                                           {"/usr/bin/nvcc": File(b"#!/bin/sh\necho release 11.8\n", 0o755)}))},
        script="apt-get -q update; apt-get -qy install nvidia-cuda-toolkit cuda-nvcc-12-8; ln -sfn cuda-12.8 /usr/local/cuda",
        log="export PATH=$PATH:/usr/local/cuda/bin; echo '$ which -a nvcc'; which -a nvcc",
        proves='[ "$(PATH=$PATH:/usr/local/cuda/bin command -v nvcc)" = /usr/local/cuda/bin/nvcc ]',
    ),
    Broken(
        "switched-off",
        "driver-blocked-by-prime-profile",
        files={**trusting(), "/etc/modprobe.d/nvidia-off.conf": b"# The card rests.\nalias nvidia off\nalias nvidia-drm off\n"},
        script=f"apt-get -q update; apt-get -qy install linux-headers-amd64 nvidia-kernel-dkms={NEW}-1 nvidia-driver-cuda={NEW}-1",
        proves="! modprobe -c | grep '^alias nvidia off'",
    ),
)  # fmt: skip
