"""Every file of the driver with its owner: a package, NVIDIA's installer, DKMS, a wheel, the container toolkit, or nobody that is known."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from steps.detect.places import PLACES
from steps.detect.probes import Probes
from steps.detect.run_file import leftovers
from steps.model.base import Record

Kind = Literal["library", "tool", "module"]
Owner = Literal["package", "installer", "dkms", "wheel", "container-toolkit", "unknown"]

_PLACES: tuple[tuple[Kind, str], ...] = (
    *(
        ("library", f"{folder}/lib{name}*.so.*")
        for folder in ("/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib")
        for name in ("nvidia-", "cuda", "nvcuvid")
    ),
    *(("tool", f"{folder}/nvidia-*") for folder in ("/usr/bin", "/usr/sbin", "/usr/local/bin")),
    *(
        ("module", f"/lib/modules/*/{folder}/{name}")
        for folder in PLACES
        # Not the kernel's own nvidia-wmi-ec-backlight.
        for name in ("nvidia.ko*", "nvidia-[!w]*.ko*", "nvidia_*.ko*")
    ),
    *(("library", f"{folder}/lib/python3*/site-packages/*/lib/lib{name}.so*") for folder in ("/opt/*", "/opt/*/envs/*", "/home/*/*")
      for name in ("cuda", "nvidia-ml")),
)  # fmt: skip
_INSTALLER_LISTS = ("/var/lib/nvidia/log", "/var/log/nvidia-installer.log")
_SECONDS = 20.0


class OwnedFile(Record):
    """One file; `name` is the package, wheel or DKMS entry, `version` what its name or folder tells, `None` where nothing does."""

    path: str
    kind: Kind
    owner: Owner
    name: str | None = None
    version: str | None = None


class Conflict(Record):
    """Files that stand for the same thing and belong to different owners: which of them is loaded is chance."""

    what: str
    files: tuple[OwnedFile, ...]


class Owners(Record):
    """What lies on disk, whose it is, and what stands in each other's way."""

    files: tuple[OwnedFile, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    uninstaller: str | None = None
    """NVIDIA's own uninstaller, where the installer was used."""

    @property
    def strangers(self) -> tuple[OwnedFile, ...]:
        """Return the files of conflicts that belong to no package: the smallest clean-up takes just these away."""
        found = (file for conflict in self.conflicts for file in conflict.files if file.owner in ("installer", "unknown", "wheel"))
        return tuple({file.path: file for file in found}.values())


def owners(host: Probes) -> Owners:
    """Return the driver's files with their owners."""
    paths: dict[str, Kind] = {}
    for kind, pattern in _PLACES:
        paths |= {path: kind for path in host.glob(pattern) if path not in paths}
    packaged = _packages(host, tuple(paths))
    listed = "\n".join(text for path in _INSTALLER_LISTS if (text := host.read(path)))
    files = tuple(_owned(path, kind, packaged, listed) for path, kind in sorted(paths.items()))
    left = next((path for path in leftovers(host) if path.endswith("nvidia-uninstall")), None)
    return Owners(files=files, conflicts=tuple(_conflicts(files)), uninstaller=left)


def _owned(path: str, kind: Kind, packaged: Mapping[str, str], listed: str) -> OwnedFile:
    """Return one file with its owner."""
    package = packaged.get(path)
    wheel = re.search(r"/site-packages/([^/]+)/", path)
    owner: Owner
    if package is not None:
        owner = "container-toolkit" if "container" in package else "package"
    elif wheel:
        owner = "wheel"
    elif re.search(rf"{re.escape(path)}(?:$|\s)", listed, re.MULTILINE) or "/kernel/drivers/video/" in path:
        owner = "installer"
    elif "/updates/" in path or "/extra/" in path:
        owner = "dkms"
    else:
        owner = "unknown"
    version = re.search(r"\.so\.(\d{3}\.\d+(?:\.\d+)?)$", path)
    return OwnedFile(
        path=path, kind=kind, owner=owner, name=package or (wheel[1] if wheel else None), version=version[1] if version else None
    )


def _packages(host: Probes, paths: tuple[str, ...]) -> dict[str, str]:
    """Return the package of each path that one owns; empty where no package manager could be asked."""
    if not paths or host.host.rehearsal:
        return {}
    if host.exists("/var/lib/dpkg/status"):
        # What was packaged below /lib lies below /usr/lib where both are one.
        spellings = {spelling: path for path in paths for spelling in (path, path.removeprefix("/usr"), f"/usr{path}")}
        told = host.run(("dpkg", "--search", "--", *spellings), timeout=_SECONDS).stdout
        lines = (line.rpartition(": ") for line in told.splitlines() if not line.startswith("diversion"))
        return {spellings[path]: names.partition(",")[0].partition(":")[0] for names, _, path in lines if path in spellings}
    if host.exists("/var/lib/pacman"):
        told = host.run(("pacman", "-Qo", *paths), timeout=_SECONDS).stdout
        return {found[1]: found[2] for found in re.finditer(r"^(/\S+) is owned by (\S+)", told, re.MULTILINE)}
    rows = host.run(("rpm", "-qf", "--queryformat", "%{NAME}\\n", *paths), timeout=_SECONDS).stdout.splitlines()
    return (
        {path: name for path, name in zip(paths, rows, strict=False) if re.fullmatch(r"[\w.+-]+", name)} if len(rows) == len(paths) else {}
    )


def _conflicts(files: Iterable[OwnedFile]) -> Iterator[Conflict]:
    """Yield the libraries of two owners or versions, tools in two places, and modules that lie twice for one kernel."""
    groups: dict[str, list[OwnedFile]] = {}
    for file in files:
        groups.setdefault(_stands_for(file), []).append(file)
    for what, same in sorted(groups.items()):
        if len({(file.owner, file.name) for file in same}) > 1 or len({file.version for file in same if file.version}) > 1:
            yield Conflict(what=what, files=tuple(same))


def _stands_for(file: OwnedFile) -> str:
    """Return what a file is looked up as: a module for its kernel, a library by its name and word size, a tool by its name."""
    name = file.path.rpartition("/")[2]
    kernel = re.match(r"/lib/modules/([^/]+)/", file.path)
    if kernel:
        return f"{kernel[1]} {name.partition('.ko')[0].replace('-', '_')}"
    if file.kind == "library":
        small = "i386" if "i386" in file.path else ""
        return f"{name.partition('.so')[0]}.so {small}".strip()
    return name
