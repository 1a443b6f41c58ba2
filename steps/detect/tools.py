"""The programs that setting up and watching a machine needs, and their versions."""

from __future__ import annotations

import re

from steps.detect.packages import Packages
from steps.detect.probes import Probes

_ASKED: dict[str, tuple[str, ...]] = {
    "uv": ("uv", "--version"),
    "conda": ("conda", "--version"),
    "docker": ("docker", "--version"),
    "nvidia_container_toolkit": ("nvidia-ctk", "--version"),
    "dcgm": ("dcgmi", "--version"),
}
_BY_PACKAGE = {
    "docker": r"docker-ce|docker\.io|moby-engine",
    "nvidia_container_toolkit": r"nvidia-container-toolkit",
    "dcgm": r"datacenter-gpu-manager.*",
    "dkms": r"dkms",
    "mokutil": r"mokutil",
}
_FOLDERS = ("/usr/local/bin", "/usr/bin", "/usr/local/sbin", "/usr/sbin", "/bin", "/snap/bin")


def tools(host: Probes, packages: Packages) -> dict[str, str | None]:
    """Return the version of each tool that is known to be there; a program that does not start has no version."""
    host.ahead(*_ASKED.values(), timeout=5)
    found: dict[str, str | None] = {}
    for name, argv in _ASKED.items():
        result = host.run(argv, timeout=5)
        version = re.search(r"\d+(?:\.\d+)+", result.stdout)
        found[name] = version[0] if version and result.status == 0 else None
    for name, pattern in _BY_PACKAGE.items():
        if found.get(name) is None:
            package = next(iter(packages.matching(pattern)), None)
            told = re.search(r"(?:\d+:)?(\d+(?:\.\d+)*)", package.version or "") if package else None
            found[name] = told[1] if told else None
    return found
