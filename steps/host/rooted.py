"""A mounted system below a folder, on the hardware of this machine or of a capture."""

from __future__ import annotations

import re
from pathlib import Path

from steps.errors import InputError
from steps.host.base import Host, Result
from steps.host.files import FileTree
from steps.host.local import run_bounded, told_by_files

_OF_THE_HARDWARE = ("/sys/", "/proc/", "/dev/")
_OF_THE_RUNNING_KERNEL = re.compile(r"^/(sys/module|proc/driver|proc/modules|dev)(/|$)")
_KERNEL = ("/proc/sys/kernel/osrelease",)
_HARDWARE_PROBES = frozenset(("lspci", "lscpu", "lsblk", "dmidecode", "mokutil", "ip", "ibstat", "systemd-detect-virt"))
_DRIVER_PROBES = frozenset(
    ("bringup", "nvidia-smi", "rocm-smi", "rocminfo", "hl-smi", "dmesg", "lsmod", "env", "ulimit", "systemctl", "keyctl", "getenforce")
)
"""They would answer for the machine we run on, its driver, its services, this process, not for the mounted system."""


class RootedHost(FileTree):
    """The system below `root`: its files, packages and newest kernel; /sys and /proc are the hardware's.

    What belongs to the running kernel (loaded modules, its messages) is not the mounted system's and does not exist here.
    """

    rehearsal = False

    def __init__(self, root: str, hardware: Host) -> None:
        super().__init__(root)
        if not Path(self.root).is_dir():
            raise InputError("root-missing", path=root)
        self.hardware = hardware
        self.name = (FileTree.read(self, "/etc/hostname") or "").strip() or Path(self.root).name

    def kernel(self) -> str | None:
        """Return the newest kernel whose modules are installed, or `None`."""
        found = super().listdir("/lib/modules") or ()
        return max((name for name in found if name[:1].isdigit()), key=version_key, default=None)

    def _theirs(self, path: str) -> bool:
        return path.startswith(_OF_THE_HARDWARE)

    def read_bytes(self, path: str) -> bytes | None:
        """Return a file of the root, or of the hardware."""
        if path in _KERNEL:
            kernel = self.kernel()
            return None if kernel is None else f"{kernel}\n".encode()
        if _OF_THE_RUNNING_KERNEL.match(path) or path == "/proc/version":
            return None
        return self.hardware.read_bytes(path) if self._theirs(path) else super().read_bytes(path)

    def exists(self, path: str) -> bool | None:
        """Return whether the root, or the hardware, has it."""
        if _OF_THE_RUNNING_KERNEL.match(path):
            return False
        return self.hardware.exists(path) if self._theirs(path) else super().exists(path)

    def listdir(self, path: str) -> tuple[str, ...] | None:
        """Return names in the root, or of the hardware."""
        if _OF_THE_RUNNING_KERNEL.match(path):
            return None
        return self.hardware.listdir(path) if self._theirs(path) else super().listdir(path)

    def readlink(self, path: str) -> str | None:
        """Return a link of the root, or of the hardware."""
        if _OF_THE_RUNNING_KERNEL.match(path):
            return None
        return self.hardware.readlink(path) if self._theirs(path) else super().readlink(path)

    def glob(self, pattern: str) -> tuple[str, ...]:
        """Return matches in the root, or of the hardware."""
        if _OF_THE_RUNNING_KERNEL.match(pattern):
            return ()
        return self.hardware.glob(pattern) if self._theirs(pattern) else super().glob(pattern)

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0) -> Result:
        """Return what the probe prints: of the hardware, or inside the root by `chroot`."""
        told = told_by_files(self, argv)
        if told is not None:
            return told
        if argv[0] in _DRIVER_PROBES:
            return Result()
        if argv == ("uname", "-a"):
            arch = self.hardware.run(argv, timeout=timeout).stdout.split()[-2:-1]
            return Result(stdout=f"Linux {self.name} {self.kernel() or 'unknown'} {' '.join(arch)} GNU/Linux\n", status=0)
        if argv[0] in _HARDWARE_PROBES:
            return self.hardware.run(argv, timeout=timeout)
        kernel = self.kernel()
        if argv[0] == "modinfo" and kernel is not None and "-k" not in argv:
            # Left alone it looks for the modules of the kernel that runs, which is not the root's.
            argv = ("modinfo", "-k", kernel, *argv[1:])
        # chroot answers 127 by itself when the program is not in the root; without privilege it cannot look: not known.
        found = run_bounded(self.command(argv), timeout)
        return Result() if found.status in (125, 126) else found

    def recorded(self) -> tuple[tuple[str, ...], ...]:
        """Return the probes of the hardware that a capture holds."""
        return tuple(argv for argv in self.hardware.recorded() if argv[0] in _HARDWARE_PROBES - _DRIVER_PROBES)

    def command(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """Return `argv` behind `chroot`."""
        return ("chroot", self.root, *argv)


def version_key(kernel: str) -> list[tuple[int, str]]:
    """Order kernel names as versions: numbers by value."""
    return [(int(part), "") if re.fullmatch(r"[0-9]{1,18}", part) else (-1, part) for part in re.split(r"[.\-_+~]", kernel)]
