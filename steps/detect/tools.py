"""The programs that setting up and watching a machine needs, and their versions."""

from __future__ import annotations

import re

from steps.detect.packages import Packages
from steps.detect.probes import Probes

_ASKED: dict[str, tuple[str, ...]] = {
    "uv": ("uv", "--version"),
    # The distribution's own: what stands first in a person's PATH may be a shim that takes half a second to answer.
    "python3": ("/usr/bin/python3", "--version"),
    "conda": ("conda", "--version"),
    "docker": ("docker", "--version"),
    "nvidia_container_toolkit": ("nvidia-ctk", "--version"),
    "dcgm": ("dcgmi", "--version"),
}
_BY_PACKAGE = {
    "python3": r"python3|python3-minimal",
    "docker": r"docker-ce|docker\.io|moby-engine",
    "nvidia_container_toolkit": r"nvidia-container-toolkit",
    "dcgm": r"datacenter-gpu-manager.*",
    "dkms": r"dkms",
    "mokutil": r"mokutil",
    "libvirt": r"libvirt-daemon(-system|-driver-qemu)?|proxmox-ve",
}


def ahead(host: Probes, packages: Packages) -> None:
    """Start the programs whose version no package tells."""
    host.ahead(*_asked({name: _packaged(packages, pattern) for name, pattern in _BY_PACKAGE.items()}).values(), timeout=5)


def _asked(known: dict[str, str | None]) -> dict[str, tuple[str, ...]]:
    return {name: argv for name, argv in _ASKED.items() if known.get(name) is None}


def tools(host: Probes, packages: Packages) -> dict[str, str | None]:
    """Return the version of each tool that is known to be there; a program that does not start has no version."""
    found: dict[str, str | None] = {name: _packaged(packages, pattern) for name, pattern in _BY_PACKAGE.items()}
    for name, argv in _asked(found).items():
        result = host.run(argv, timeout=5)
        version = re.search(r"\d+(?:\.\d+)+", result.stdout)
        found[name] = version[0] if version and result.status == 0 else None
    return dict(sorted(found.items()))


def _packaged(packages: Packages, pattern: str) -> str | None:
    """Return the upstream version of the first package that matches, without asking the program."""
    package = next(iter(packages.matching(pattern)), None)
    told = re.match(r"(?:\d+:)?(\d+(?:\.\d+)*)", package.version or "") if package else None
    return told[1] if told else None
