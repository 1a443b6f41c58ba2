"""A recording into which only such answers go that name nobody; what else is asked is answered, and forgotten."""

from __future__ import annotations

import re

from steps.host.base import Host, Result
from steps.host.recording import RecordingHost

_PROGRAMS = frozenset(
    [
        "dmesg",
        "modinfo",
        "lsmod",
        "dkms",
        "mokutil",
        "keyctl",
        "prime-select",
        "getenforce",
        "uname",
        "systemd-detect-virt",
        "test",
        "bringup",
        "nvidia-smi",
        "/usr/lib/wsl/lib/nvidia-smi",
        "rocminfo",
        "rocm-smi",
        "hl-smi",
        "lspci",
    ]
)
"""They tell of modules, keys, cards and the kernel. `ps`, `env`, `df` and apt's logs tell what a person runs, holds and installs."""
_DEVICES = re.compile(r"/dev/(nvidia|kfd|dri|accel|hl|dxg)")
_OF_THE_DRIVER = ("nvidia-persistenced", "nvidia-fabricmanager")
_FILES = re.compile(
    r"/sys/|/proc/(driver/|version$|modules$|devices$)|/(etc|usr/lib|lib|run)/mod(probe|ules-load)\.d/|/lib/modules/|/usr/lib/modules/"
    r"|/var/lib/dkms/|/var/lib/dpkg/status$|/var/log/(nvidia-installer|cuda-installer|fabricmanager)\.log$"
)


class Discreet:
    """Passes every question on to a machine, by way of its recording where the answer names nobody. See `Host` for the questions."""

    def __init__(self, recording: RecordingHost) -> None:
        self._recording = recording
        self._inner: Host = recording.inner
        self.name = recording.name
        self.root = recording.root
        self.rehearsal = recording.rehearsal
        self.command = recording.command
        self.free_bytes = recording.free_bytes
        self.recorded = recording.recorded

    def _for(self, path: str) -> Host:
        return self._recording if _FILES.match(path) else self._inner

    def read(self, path: str) -> str | None:
        """Return the text of a file."""
        return self._for(path).read(path)

    def read_bytes(self, path: str) -> bytes | None:
        """Return the bytes of a file."""
        return self._for(path).read_bytes(path)

    def exists(self, path: str) -> bool | None:
        """Return whether a path is there."""
        return self._for(path).exists(path)

    def listdir(self, path: str) -> tuple[str, ...] | None:
        """Return what is in a folder."""
        return self._for(path).listdir(path)

    def readlink(self, path: str) -> str | None:
        """Return where a link points."""
        return self._for(path).readlink(path)

    def glob(self, pattern: str) -> tuple[str, ...]:
        """Return what matches."""
        return self._for(pattern).glob(pattern)

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0) -> Result:
        """Return what a probe prints."""
        return (self._recording if _names_nobody(argv) else self._inner).run(argv, timeout=timeout)


def _names_nobody(argv: tuple[str, ...]) -> bool:
    """Return whether what a probe prints is about modules, keys, cards and the kernel only."""
    if argv[0] == "journalctl":
        return argv[1:2] == ("-k",) or (argv[1:2] == ("-u",) and argv[2] in _OF_THE_DRIVER)
    if argv[0] == "systemctl":
        return argv[1:2] == ("is-active",) and argv[2:] != () and all(unit.removesuffix(".service") in _OF_THE_DRIVER for unit in argv[2:])
    if argv[0] == "ls":
        return all(word.startswith("-") or _DEVICES.match(word) for word in argv[1:])
    return argv[0] in _PROGRAMS
