"""Packages, repositories, DKMS, disks, Secure Boot, nouveau, the bus: made-up machines in the words of many programs."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.doctor import kit

FAILED = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
JAMMY = {"/etc/os-release": 'ID=ubuntu\nVERSION_ID="22.04"\nID_LIKE=debian\n'}
NOBLE = {"/etc/os-release": 'ID=ubuntu\nVERSION_ID="24.04"\nID_LIKE=debian\n'}
TRIXIE = {"/etc/os-release": 'ID=debian\nVERSION_ID="13"\n'}
ROCKY = {"/etc/os-release": 'ID="rocky"\nVERSION_ID="9.4"\nID_LIKE="rhel centos fedora"\n'}
CUDA = "https://developer.download.nvidia.com/compute/cuda/repos"


class Made(NamedTuple):
    """A machine, the cause that is right, and the look-alikes that must not be found at all."""

    cause: str
    log: str = ""
    commands: dict[str, str] = {}
    files: dict[str, str] = {}
    never: tuple[str, ...] = ()


HASHES = "   Hashes of expected file:\n    - SHA256:aa\n    - Filesize:{} [weak]\n   Hashes of received file:\n    - "
"SHA256:bb\n    - Filesize:{} [weak]\n"
MADE: tuple[Made, ...] = (
    # -- dkms
    Made(
        "kernel-headers-missing",
        "Error! Your kernel headers for kernel 5.15.0-91-generic cannot be found.\nPlease install the "
        "linux-headers-5.15.0-91-generic package\n",
        {"uname -r": "5.15.0-91-generic", "nvidia-smi": FAILED},
        never=("driver-does-not-build-on-kernel",),
    ),
    Made(
        "kernel-headers-missing",
        "Error! Your kernel headers for kernel 6.1.0-18-amd64 cannot be found at /lib/modules/6.1.0-18-amd64/build or "
        "/lib/modules/6.1.0-18-amd64/source.\nPlease install the linux-headers-6.1.0-18-amd64 package\n",
        {"uname -r": "6.1.0-18-amd64", "dkms status": "nvidia-current/535.161.07: added\n"},
        never=("driver-does-not-build-on-kernel",),
    ),
    Made(
        "kernel-headers-missing",
        "Could not find files needed to compile modules for 6.9.5-200.fc40.x86_64\nAre the development files for kernel "
        "6.9.5-200.fc40.x86_64 or the appropriate kernel-devel package installed?\n",
        {"uname -r": "6.9.5-200.fc40.x86_64"},
    ),
    Made(
        "kernel-headers-missing",
        "make[1]: *** /lib/modules/6.8.0-40-generic/build: No such file or directory.  Stop.\n(bad exit status: 2)\n"
        "Error! Bad return status for module build on kernel: 6.8.0-40-generic (x86_64)\n/var/lib/dkms/nvidia/550.90.07/build/make.log\n",
        {"uname -r": "6.8.0-40-generic"},
    ),
    Made(
        "driver-does-not-build-on-kernel",
        "Building module(s)..........(bad exit status: 2)\nError! Bad return status for module build on kernel: 6.12.9-arch1-1 (x86_64)\n"
        "Consult /var/lib/dkms/nvidia/470.256.02/build/make.log for more information.\n",
        {"uname -r": "6.12.9-arch1-1"},
        never=("kernel-headers-missing", "dkms-compiler-too-old"),
    ),
    Made(
        "driver-does-not-build-on-kernel",
        "/var/lib/dkms/nvidia/390.157/build/nvidia/nv-mmap.c:450:5: error: implicit declaration of function 'follow_pfn'\n"
        "make[2]: *** [scripts/Makefile.build:243: /var/lib/dkms/nvidia/390.157/build/nvidia/nv-mmap.o] Error 1\n",
        {"uname -r": "6.12.9-arch1-1"},
        never=("kernel-headers-missing",),
    ),
    Made(
        "driver-does-not-build-on-kernel",
        "Setting up nvidia-dkms-535 (535.54.03-0ubuntu1) ...\nBuilding initial module for 6.11.0-9-generic\n"
        "Error! Bad return status for module build on kernel: 6.11.0-9-generic (x86_64)\ndpkg: error processing "
        "package nvidia-dkms-535 (--configure):\n"
        " installed nvidia-dkms-535 package post-installation script subprocess returned error exit status 10\n",
        never=("dpkg-interrupted",),
    ),
    Made(
        "dkms-compiler-too-old",
        "cc: error: unrecognized command-line option '-ftrivial-auto-var-init=zero'\nError! Bad return status for module build on kernel: "
        "6.5.0-14-generic (x86_64)\nConsult /var/lib/dkms/nvidia/535.129.03/build/make.log for more information.\n",
    ),
    Made(
        "dkms-compiler-too-old",
        "gcc: error: unrecognized command line option ‘-fmin-function-alignment=16’; did you mean ‘-flimit-function-alignment’?\n"
        "make[1]: *** [/var/lib/dkms/nvidia/560.35.03/build/nvidia/nv.o] Error 1\n",
    ),
    Made(
        "dkms-tree-stale-entry",
        "Error! Could not locate dkms.conf file.\nFile: /var/lib/dkms/nvidia/470.57.02/source/dkms.conf does not exist.\n",
        never=("driver-does-not-build-on-kernel", "kernel-headers-missing"),
    ),
    Made("dkms-tree-stale-entry", "", {"dkms status": "nvidia/525.60.11: broken\n", "nvidia-smi": FAILED}),
    Made(
        "driver-package-contains-wrong-version",
        "",
        {
            "dpkg -l": "ii  nvidia-dkms-570 570.133.20-0ubuntu1 amd64\nii  nvidia-firmware-570 570.133.20-0ubuntu1 amd64\n",
            "modinfo nvidia": "version:        570.124.06\n",
            "dmesg": "NVRM: GSP firmware image version mismatch: got version 570.133.20, expected version 570.124.06\n",
        },
        never=("stale-module-on-disk", "gpu-firmware-file-missing"),
    ),
    # -- repositories
    Made(
        "apt-repo-key-rotated",
        f"W: OpenPGP signature verification failed: {CUDA}/debian13/x86_64  InRelease: Sub-process /usr/bin/sqv "
        f"returned an error code (1), "
        "error message is: Missing key EB693B3035CD5710E231E123A4B469963BF863CC, which is needed to verify signature.\n",
        files=TRIXIE,
        never=("repo-for-other-distro",),
    ),
    Made(
        "apt-repo-key-rotated",
        f"Fehl:4 {CUDA}/ubuntu2204/x86_64  InRelease\n  Die folgenden Signaturen konnten nicht überprüft werden, "
        f"weil ihr öffentlicher Schlüssel "
        f"nicht verfügbar ist: NO_PUBKEY A4B469963BF863CC\nW: GPG-Fehler: {CUDA}/ubuntu2204/x86_64  InRelease: "
        f"NO_PUBKEY A4B469963BF863CC\n",
        files=JAMMY,
    ),
    Made(
        "repo-for-other-distro",
        f"W: GPG error: {CUDA}/ubuntu2004/x86_64  InRelease: The following signatures couldn't be verified because the public key is not "
        "available: NO_PUBKEY A4B469963BF863CC\n",
        files=JAMMY,
        never=("apt-repo-key-rotated",),
    ),
    Made(
        "repo-for-other-distro",
        "The following packages have unmet dependencies:\n nsight-systems-2023.2.3 : Depends: libtinfo5 but it is not installable\n",
        files={**NOBLE, "/etc/apt/sources.list.d/cuda.list": f"deb [signed-by=/a.gpg] {CUDA}/ubuntu2204/x86_64/ /\n"},
        never=("repo-inconsistent-on-server",),
    ),
    Made(
        "repo-for-other-distro",
        " nvidia-driver-570 : Depends: libc6 (>= 2.38) but 2.35-0ubuntu3.8 is to be installed\n",
        files=JAMMY,
        never=("conflicting-driver-branch-blocks-install",),
    ),
    Made(
        "apt-signed-by-conflict",
        f"E: Conflicting values set for option Signed-By regarding source {CUDA}/debian12/x86_64/ /: "
        f"/usr/share/keyrings/cuda-archive-keyring.gpg "
        "!= \nE: The list of sources could not be read.\n",
        never=("apt-repo-key-rotated",),
    ),
    Made(
        "http-cache-corrupts-repo-data",
        "E: Failed to fetch http://developer.download.nvidia.com/compute/cuda/repos/ubuntu2204/x86_64/./libcublas.deb  Hash Sum mismatch\n"
        + HASHES.format(500, 500),
        files=JAMMY,
        never=("repo-inconsistent-on-server",),
    ),
    Made(
        "http-cache-corrupts-repo-data",
        "E: The repository is not updated. GPG error: "
        "http://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64  InRelease: The "
        "following signatures were invalid: BADSIG A4B469963BF863CC cudatools <cudatools@nvidia.com>\n",
        never=("apt-repo-key-rotated",),
    ),
    Made(
        "repo-inconsistent-on-server",
        f"E: Failed to fetch {CUDA}/ubuntu2404/x86_64/Packages.gz  File has unexpected size (917254 != 916812). Mirror sync in progress?\n",
        files=NOBLE,
        never=("http-cache-corrupts-repo-data",),
    ),
    Made(
        "repo-inconsistent-on-server",
        "The following packages have unmet dependencies:\n cuda-drivers-575 : Depends: nvidia-driver-575 (= "
        "575.51.03-0ubuntu1) but it is not "
        "installable\n                    Depends: libnvidia-gl-575 (= 575.51.03-0ubuntu1) but it is not installable\n",
        never=("conflicting-driver-branch-blocks-install",),
    ),
    Made(
        "conflicting-driver-branch-blocks-install",
        "The following packages have unmet dependencies:\n nvidia-kernel-dkms : Conflicts: nvidia-kernel-open-dkms "
        "but 580.82.07-1 is to be "
        "installed\nE: Unable to correct problems, you have held broken packages.\n",
        never=("held-package-blocks-install",),
    ),
    Made(
        "conflicting-driver-branch-blocks-install",
        " nvidia-driver-550 : Depends: nvidia-dkms-550 (= 550.90.07-0ubuntu1) but it is not going to be installed or\n"
        "                     Depends: libnvidia-decode-550 (= 550.90.07-0ubuntu1) but it is not going to be installed\n",
        {"apt-mark showhold": "", "dpkg -l": "ii  nvidia-driver-535 535.183.01-0ubuntu1 amd64\n"},
        never=("held-package-blocks-install", "repo-inconsistent-on-server"),
    ),
    Made(
        "held-package-blocks-install",
        " libcudnn8-dev : Depends: libcudnn8 (= 8.9.7.29-1+cuda12.2) but 8.6.0.163-1+cuda11.8 is to be installed\n"
        "E: Unable to correct problems, you have held broken packages.\n",
        never=("conflicting-driver-branch-blocks-install",),
    ),
    Made(
        "held-package-blocks-install",
        "The following held packages will be changed:\n  libnccl2\nE: Held packages were changed and -y was used without "
        "--allow-change-held-packages.\n",
        {"apt-mark showhold": "libnccl2\n"},
    ),
    Made("package-version-not-in-repo", "E: Version '2.26.2-1+cuda12.8' for 'libnccl2' was not "
    "found\n", never=("held-package-blocks-install",)),
    Made("package-version-not-in-repo", "E: La version « 12.8.9-1 » de « cuda-toolkit-12-8 » n'a pu être trouvée\n"),
    Made(
        "prebuilt-modules-lag-driver",
        "The following packages have unmet dependencies:\n linux-modules-nvidia-550-generic-hwe-22.04 : Depends: "
        "nvidia-kernel-common-550 (<= "
        "550.107.02-1) but 550.120-0ubuntu0.22.04.1 is to be installed\n",
        never=("conflicting-driver-branch-blocks-install", "two-repos-same-branch"),
    ),
    Made(
        "old-cuda-packages-want-old-driver",
        " cuda-runtime-10-1 : Depends: cuda-drivers (>= 418.87) but it is not going to be installed\n",
        {"dpkg -l": "ii  nvidia-driver-535 535.183.01-0ubuntu1 amd64\n"},
        never=("conflicting-driver-branch-blocks-install",),
    ),
    Made(
        "multiarch-driver-version-skew",
        "dpkg: Fehler beim Bearbeiten des Archivs (--unpack):\n Versuch, gemeinsam benutztes »/usr/share/nvidia/rc« "
        "zu überschreiben, welches "
        "verschieden von anderen Instanzen des Paketes libnvidia-common-550:i386 ist\n",
        never=("driver-package-file-conflict",),
    ),
    Made(
        "multiarch-driver-version-skew",
        "trying to overwrite shared '/etc/OpenCL/vendors/nvidia.icd', which is different from other instances of package "
        "libnvidia-compute-550:i386\n",
    ),
    # -- runs
    Made(
        "dpkg-interrupted",
        "E: dpkg was interrupted, you must manually run 'sudo dpkg --configure -a' to correct the problem.\n",
        never=("apt-lock-held", "conffile-question-unanswered"),
    ),
    Made(
        "dpkg-interrupted",
        "E: dpkg 被中断，您必须手工运行 ‘sudo dpkg --configure -a’ 解决此问题。\n",
        {"dpkg -l": "iU  nvidia-dkms-550 550.90.07-0ubuntu1 amd64\n"},
    ),
    Made(
        "apt-lock-held",
        "Waiting for cache lock: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 4711 (unattended-upgr)... 12s\n",
        never=("dpkg-interrupted",),
    ),
    Made("apt-lock-held", "E: 无法获得锁 /var/lib/dpkg/lock-frontend。锁正由进程 1234（apt-get）持有\n"),
    Made("apt-lock-held", "Waiting for process with pid 2044 to finish.\n", files=ROCKY),
    Made(
        "package-dialog-waiting",
        "┌────┤ Configuring Secure Boot ├────┐\n│ Your system has UEFI Secure Boot enabled. │\n",
        never=("mok-not-enrolled", "dpkg-interrupted"),
    ),
    Made(
        "package-dialog-waiting",
        "",
        {"ps aux": "root 10 0.0 apt-get install -y nvidia-driver-550\nroot 20 0.0 /usr/bin/perl "
        "/usr/sbin/needrestart\nroot 21 0.0 whiptail --backtitle x\n"},
        never=("apt-lock-held",),
    ),
    Made(
        "conffile-question-unanswered",
        "*** grub (Y/I/N/O/D/Z) [default=N] ? dpkg: error processing package grub-common (--configure):\n end of "
        "file on stdin at conffile prompt\n",
        never=("package-dialog-waiting", "dpkg-interrupted"),
    ),
    # -- disks and network
    Made(
        "boot-partition-full",
        "cp: error writing '/boot/initrd.img-6.8.0-45-generic.new': No space left on device\nupdate-initramfs: failed for "
        "/boot/initrd.img-6.8.0-45-generic with 1.\n",
        never=("disk-full-during-install",),
    ),
    Made(
        "boot-partition-full",
        "dracut[E]: FAILED: cp: error writing '/boot/initramfs-5.14.0-427.el9.x86_64.img': No space left on device\n",
        files=ROCKY,
    ),
    Made(
        "disk-full-during-install",
        "dpkg: error processing archive /var/cache/apt/archives/cuda-nsight.deb (--unpack):\n cannot copy extracted "
        "data for './usr/local/cuda/a' "
        "to '/usr/local/cuda/a.dpkg-new': failed to write (No space left on device)\n",
        never=("boot-partition-full", "pip-temp-dir-full", "dpkg-interrupted"),
    ),
    Made("disk-full-during-install", "E: You don't have enough free space in /var/cache/apt/archives/.\n"),
    Made(
        "pip-temp-dir-full",
        "Collecting torch\nERROR: Could not install packages due to an OSError: [Errno 28] No space left on device: "
        "'/tmp/pip-unpack-x/a.whl'\n",
        {"df -h": "tmpfs 2.0G 2.0G 0 100% /tmp\n/dev/nvme0n1p2 900G 100G 800G 12% /\n"},
        never=("disk-full-during-install", "shm-too-small"),
    ),
    Made(
        "pip-temp-dir-full",
        "error: Failed to write to the distribution cache\n  Caused by: failed to write to file "
        "`/home/me/.cache/uv/x.whl`: No space left on device "
        "(os error 28)\n",
        {"df -h": "/dev/sda1 50G 50G 0 100% /home\n/dev/sdb1 900G 100G 800G 12% /data\n"},
    ),
    Made(
        "proxy-breaks-tls",
        f"Err:5 {CUDA}/ubuntu2204/x86_64  InRelease\n  Could not handshake: The TLS connection was non-properly terminated. "
        f"[IP: 10.1.2.3 3128]\nE: The repository '{CUDA}/ubuntu2204/x86_64  Release' does not have a Release file.\n",
        files=JAMMY,
        never=("repo-for-other-distro", "http-cache-corrupts-repo-data"),
    ),
    Made(
        "proxy-breaks-tls",
        f"Errors during downloading metadata for repository 'cuda-rhel9':\n  - Curl error (35): SSL connect error for {CUDA}/rhel9/x86_64/"
        "repodata/repomd.xml [OpenSSL SSL_connect: SSL_ERROR_SYSCALL]\n",
        files={**ROCKY, "/etc/dnf/dnf.conf": "[main]\nproxy=http://user:secret@proxy.example:8080\n"},
    ),
    Made("disk-full-during-install", "Disk Requirements:\n   At least 2100MB more space needed on the / filesystem.\n", files=ROCKY),
    Made("boot-partition-full", "  installing package kernel-core-6.8.5-301.fc40.x86_64 needs 34MB more space on the /boot filesystem\n"),
    Made("dpkg-interrupted", "", {"dpkg --audit": "The following packages are not configured:\n nvidia-dkms-535 NVIDIA DKMS package\n"}),
    # -- Secure Boot
    Made(
        "mok-not-enrolled",
        "",
        {
            "mokutil --sb-state": "SecureBoot enabled\n",
            "modprobe nvidia": "modprobe: ERROR: could not insert 'nvidia': Required key not available\n",
        },
        never=("mok-not-in-machine-keyring",),
    ),
    Made("mok-not-enrolled", "", {"dmesg": "[ 9.1] Loading of unsigned module is rejected\n", "nvidia-smi": FAILED}),
    Made(
        "mok-not-in-machine-keyring",
        "",
        {
            "mokutil --test-key /var/lib/shim-signed/mok/MOK.der": "/var/lib/shim-signed/mok/MOK.der is already enrolled\n",
            "modprobe nvidia": "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service\n",
        },
        never=("mok-not-enrolled",),
    ),
    # -- who drives the card
    Made(
        "in-tree-driver-owns-gpu",
        "",
        {
            "lspci -nnk": "01:00.0 VGA compatible controller [0300]: NVIDIA Corporation AD104 [GeForce RTX 4070] [10de:2786] (rev a1)\n"
            "\tKernel driver in use: nova_core\n\tKernel modules: nouveau, nova_core, nvidia\n",
            "grep -r nvidia /etc/modprobe.d": "/etc/modprobe.d/x.conf:blacklist nouveau\n",
            "nvidia-smi": FAILED,
        },
        never=("vfio-owns-gpu",),
    ),
    Made(
        "vfio-owns-gpu",
        "",
        {
            "lspci -nnk": "65:00.0 3D controller [0302]: NVIDIA Corporation GA100 [A100 PCIe 40GB] [10de:20f1] (rev a1)\n"
            "\tKernel driver in use: vfio-pci\n\tKernel modules: nvidiafb, nouveau, nvidia\n",
            "nvidia-smi": "No devices were found\n",
        },
        never=("in-tree-driver-owns-gpu",),
    ),
    Made(
        "nouveau-running-until-reboot",
        "WARNING: Nouveau is running: any attempt to disable it will not take effect until after a reboot.\nInstallation of the NVIDIA "
        "Accelerated Graphics Driver for Linux-x86_64 (version: 570.86.16) is now complete.\n",
    ),
    Made(
        "vfio-owns-gpu",
        "",
        {"dmesg": "NVRM: GPU 0000:81:00.0 is already bound to vfio-pci.\nNVRM: The NVIDIA probe routine was not called for 1 device(s).\n"},
        never=("in-tree-driver-owns-gpu",),
    ),
    # -- the bus
    Made("gpu-absent-from-pci", "", {"lspci -nn -d 10de:": "", "nvidia-smi": FAILED}, never=("gpu-fell-off-bus",)),
    Made(
        "gpu-boot-firmware-failed",
        "",
        {"dmesg": "NVRM: GPU0 gpuWaitForGfwBootComplete: failed to wait for GFW_BOOT: (progress 0x0)\nNVRM: GPU "
        "0000:41:00.0: RmInitAdapter failed! (0x62:0x65:2015)\n"},
        never=("gpu-needs-open-module", "gpu-firmware-file-missing"),
    ),
    Made(
        "bar-space-too-small",
        "",
        {"dmesg": "pci 0000:01:00.0: BAR 1 [mem size 0x800000000 64bit pref]: can't assign; no space\n"
         "pci 0000:01:00.0: BAR 1 [mem size 0x800000000 64bit pref]: failed to assign\n"},
        never=("gpu-fell-off-bus",),
    ),
    Made(
        "pcie-link-errors",
        "",
        {"dmesg": "pcieport 0000:00:01.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Receiver ID)\n"
         "pcieport 0000:00:01.0:    [ 6] BadTLP\n" * 4},
        never=("pcie-lower-speed-is-normal",),
    ),
    Made(
        "pcie-link-below-capability",
        "",
        {"nvidia-smi --query-gpu=pci.bus_id,pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,pcie.link.width.max "
         "--format=csv,noheader": "00000000:01:00.0, 4, 4, 8, 16\n"},
        never=("pcie-lower-speed-is-normal",),
    ),
    Made(
        "pcie-link-below-capability",
        "",
        {"nvidia-smi --query-gpu=pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,pcie.link.width.max,utilization.gpu "
         "--format=csv,noheader": "1, 4, 16, 16, 98 %\n"},
        never=("pcie-lower-speed-is-normal",),
    ),
    Made(
        "pcie-lower-speed-is-normal",
        "",
        {"lspci -vvv": "\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM L1\n\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x16\n"},
        never=("pcie-link-below-capability",),
    ),
)  # fmt: skip


@pytest.mark.parametrize("made", MADE, ids=[f"{made.cause}-{number}" for number, made in enumerate(MADE)])
def test_a_made_up_machine_gets_its_cause_and_not_its_look_alike(made: Made) -> None:
    verdict = kit.judged(files=made.files, commands=made.commands, logs={"terminal.log": made.log} if made.log else {})
    assert (verdict.cause.id if verdict.cause else "none") == made.cause
    assert {one.id for one in verdict.diagnoses} & set(made.never) == set()


HARMLESS: dict[str, Made] = {
    "headers of a kernel that is gone": Made(
        "none", "==> ERROR: Missing 6.2.1-zen1-1-zen kernel headers for module nvidia/525.89.02.\n", {"uname -r": "6.2.6-zen1-1-zen"}
    ),
    "another module's failure": Made("none", "==> dkms install --no-depmod vboxhost/7.0.8 -k 6.4.1 exited 10\n"),
    "an option that nvcc does not know": Made("none", "nvcc fatal   : unknown option '-std=c++20'\n"),
    "a lock that wants root": Made("none", "E: Could not open lock file /var/lib/dpkg/lock-frontend - open (13: Permission denied)\n"),
    "the remedy as a command": Made("none", "$ sudo dpkg --configure -a\n"),
    "a key of somebody else's repository": Made("none", "W: GPG error: http://ppa.example/ubuntu jammy InRelease: "
    "NO_PUBKEY 0123456789ABCDEF\n"),
    "debconf without a terminal": Made("none", "debconf: unable to initialize frontend: Dialog\ndebconf: falling "
    "back to frontend: Readline\n"),
    "one corrected error": Made(
        "none", "", {"dmesg": "pcieport 0000:00:01.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Receiver ID)\n"}
    ),
    "a window of a sound function": Made("none", "", {"dmesg": "pci 0000:01:00.1: BAR 0: no space for [mem size 0x00004000]\n"}),
    "nouveau on a fresh system": Made(
        "none", "", {"lspci -nnk": "01:00.0 VGA compatible controller [0300]: NVIDIA Corporation AD104 "
        "[10de:2786]\n\tKernel driver in use: nouveau\n"}
    ),
    "a locked-down kernel": Made("none", "", {"dmesg": "Kernel is locked down from EFI Secure Boot; see man kernel_lockdown.7\n"}),
    "training without room": Made("none", "OSError: [Errno 28] No space left on device: '/data/checkpoint.pt'\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", HARMLESS)
def test_what_only_looks_alarming_is_no_fault(name: str) -> None:
    made = HARMLESS[name]
    verdict = kit.judged(files=made.files, commands=made.commands, logs={"terminal.log": made.log} if made.log else {})
    assert verdict.healthy, [one.id for one in verdict.diagnoses]


_DF = "Filesystem Size Used Avail Use% Mounted on\n/dev/sda2 100G {root} /\n/dev/sda1 974M {boot} /boot\n"
_FULL_BOOT = "update-initramfs: failed for /boot/initrd.img-6.8.0 with 1.\ncp: error writing '/boot/initrd.img': No space left on device\n"
_FULL_ROOT = "dpkg: error: failed to write '/usr/lib/libcuda.so': No space left on device\n"
_FULL_PIP = "Collecting torch\nERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n"


@pytest.mark.parametrize(
    ("log", "id"),
    [(_FULL_BOOT, "boot-partition-full"), (_FULL_ROOT, "disk-full-during-install"), (_FULL_PIP, "pip-temp-dir-full")],
)
def test_a_disk_that_has_room_now_was_full_then(log: str, id: str) -> None:
    full = kit.judged(commands={"df -h": _DF.format(root="99G 0.2G 100%", boot="970M 4M 100%")}, logs={"a.log": log}).cause
    roomy = kit.judged(commands={"df -h": _DF.format(root="20G 80G 20%", boot="200M 774M 21%")}, logs={"a.log": log}).cause
    assert full is not None
    assert roomy is not None
    assert (full.id, roomy.id) == (id, id)
    assert full.confidence >= 0.8
    assert roomy.confidence <= 0.5
    assert roomy.title.key.endswith("title-was-full")
    assert any("df" in place.source for place in roomy.evidence)
