"""The system that the evidence is from: distribution, running kernel, and what it runs inside of."""

from __future__ import annotations

import re

from steps.detect.probes import Probes
from steps.detect.system import container
from steps.doctor.told import Fact, fact
from steps.host.release import release
from steps.model.base import Record


class System(Record):
    """What is known of the system; `wsl` is `None` when nothing tells."""

    id: str | None = None
    version: str | None = None
    codename: str | None = None
    like: tuple[str, ...] = ()
    kernel: Fact | None = None
    wsl: bool | None = None
    container: str | None = None
    architecture: str | None = None

    @property
    def debian(self) -> bool:
        """Return whether it is Debian or made of it: packages are dpkg's."""
        return bool({self.id, *self.like} & {"debian", "ubuntu", "pop", "linuxmint"})


def system(host: Probes) -> System:
    """Return the system of a host."""
    told = release(host.host)
    running = _kernel(host)
    virtual = host.run(("systemd-detect-virt",)).stdout.strip()
    microsoft = running is not None and re.search(r"microsoft.*wsl|-Microsoft$", running.value, re.IGNORECASE) is not None
    machine = re.search(r"\b(x86_64|aarch64)\b", host.run(("uname", "-a")).stdout)
    return System(
        id=told.id,
        version=told.version,
        codename=told.codename,
        like=told.like,
        kernel=running,
        wsl=True if microsoft or virtual == "wsl" or host.exists("/usr/lib/wsl/lib") else False if running is not None or virtual else None,
        container=inside if (inside := container(host)) != "none" else None,
        architecture=machine[1] if machine else None,
    )


_KERNEL = (
    ("/proc/sys/kernel/osrelease", r"(\S+)"),
    ("/proc/version", r"Linux version (\S+)"),
)


def _kernel(host: Probes) -> Fact | None:
    for path, pattern in _KERNEL:
        text = host.read(path)
        found = re.match(pattern, text or "")
        if found and text:
            return fact(found[1], path, text.strip().partition("\n")[0])
    said = host.run(("uname", "-r")).stdout.strip()
    if re.match(r"\d+\.\d+\S*$", said):
        return fact(said, "uname -r")
    whole = host.run(("uname", "-a")).stdout.strip()
    found = re.match(r"Linux \S+ (\d+\.\d+\S*)", whole)
    return fact(found[1], "uname -a", whole) if found else None
