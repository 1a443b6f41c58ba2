"""The versions of the driver's two halves: in the kernel, on disk, in user space, in the package database."""

from __future__ import annotations

import re
from collections.abc import Iterator

from steps.detect.probes import Probes
from steps.doctor import numbers
from steps.doctor.events.base import Events
from steps.doctor.events.kernel import ApiMismatch, Loading
from steps.doctor.events.nvml import NvmlError
from steps.doctor.events.ownership import LibraryFile, SetUpBeside
from steps.doctor.events.packages import Changed
from steps.doctor.facts.packages import Packages, role
from steps.doctor.told import CutFact, Fact, Place, fact
from steps.model.base import Record
from steps.model.software import Flavor


class Versions(Record):
    """Every place that tells a version; the first of a tuple is the one to be trusted most."""

    loaded: tuple[Fact, ...] = ()
    """Of the module in the running kernel."""
    flavor: Flavor | None = None
    """Of the loaded module, else of the one on disk."""
    on_disk: tuple[Fact, ...] = ()
    """Of the module that modprobe would load into the running kernel."""
    user: tuple[Fact, ...] = ()
    """Of the libraries and tools of user space, those of packages among them; NVML's own word lacks the third number."""

    @property
    def differ(self) -> bool:
        """Return whether kernel and user space are certainly of two versions."""
        return bool(self.loaded) and any(not fit(self.loaded[0], one) for one in self.user)


def fit(one: Fact, other: Fact) -> bool:
    """Return whether two versions are the same; of a cut one the rest may be anything."""
    if isinstance(one, CutFact) or isinstance(other, CutFact):
        return numbers.agree(one.value, other.value)
    return numbers.parts(one.value) == numbers.parts(other.value)


def versions(host: Probes, events: Events, packages: Packages) -> Versions:
    """Return what a machine and its logs tell of the driver's versions."""
    loaded = tuple(_loaded(host, events))
    on_disk = tuple(_on_disk(host))
    user = tuple(_user(host, events, packages))
    return Versions(loaded=loaded, on_disk=on_disk, user=user, flavor=_flavor(host, events))


_PROC = "/proc/driver/nvidia/version"
_SYS = "/sys/module/nvidia/version"


def _loaded(host: Probes, events: Events) -> Iterator[Fact]:
    text = host.read(_PROC) or ""
    found = re.search(r"^.*Kernel Module(?: for \S+)?\s+(\d+\.\d+(?:\.\d+)*).*$", text, re.MULTILINE)
    if found:
        yield fact(found[1], _PROC, " ".join(found[0].split()))
    told = host.line(_SYS)
    if told:
        yield fact(told, _SYS)
    if not found and not told:
        # The newest word of the log counts: modules may have been changed since the boot.
        whole = sorted(events.all(ApiMismatch), key=lambda event: event.client is not None)
        mismatches = [Fact(place=event.place, value=event.module) for event in whole if event.module]
        mismatches += [Fact(place=event.place, value=event.module) for event in _beside(events)]
        greetings = [Fact(place=event.place, value=event.version) for event in events.all(Loading) if not event.modeset]
        yield from (mismatches or greetings)[::-1]


_ELSEWHERE = re.compile(r"compat|/usr/local/|/home/|/opt/|/root/|/run/|stubs|i386|lib32|/wsl/")
"""Folders whose libraries are another driver's, or for other programs."""


def strangers(host: Probes) -> tuple[str, ...]:
    """Return the versions of NVML's library that the loader finds in such folders, by the names of the files."""
    text = host.run(("ldconfig", "-p")).stdout
    paths = (path for path in re.findall(r"libnvidia-ml\.so\.1\b.*?=> (/\S+)", text) if _ELSEWHERE.search(path))
    found = (re.search(r"\.so\.(\d+\.\d+(?:\.\d+)?)$", host.readlink(path) or "") for path in paths)
    return tuple(one[1] for one in found if one)


def _listed(events: Events) -> Iterator[Fact]:
    """Yield the version of the driver's libraries in lists of files: of the one that the loader's name points at, if that is seen."""
    files = [
        one for one in events.all(LibraryFile) if not one.place.in_container and not _ELSEWHERE.search(f"{one.place.source} {one.path}")
    ]
    used = [one for one in files if one.used]
    known = {one.version for one in used or files}
    if len(known) == 1:
        yield Fact(place=(used or files)[0].place, value=known.pop())


def _changed(events: Events) -> Iterator[Fact]:
    """Yield the version to which a package manager's log says that the driver's user space went last."""
    mine = [one for one in events.all(Changed) if role(one.name) in ("library", "tool", "meta") and numbers.upstream(one.new)]
    if mine and mine[-1].old is not None:
        yield Fact(place=mine[-1].place, value=numbers.upstream(mine[-1].new) or "")


def _beside(events: Events) -> tuple[SetUpBeside, ...]:
    """Return the warnings of packages that were set up here, not in an image, whose kernel is the builder's."""
    return tuple(event for event in events.all(SetUpBeside) if not re.search(r"docker|podman|container|image|build", event.place.source))


def _on_disk(host: Probes) -> Iterator[Fact]:
    for argv in modinfos(host):
        text = host.run(argv).stdout
        found = re.search(r"^version:\s*(\d+\.\d+(?:\.\d+)*)", text, re.MULTILINE)
        bare = re.match(r"\s*(\d+\.\d+(?:\.\d+)*)\s*$", text) if argv[1:3] == ("-F", "version") else None
        if found or bare:
            yield fact((found or bare)[1], " ".join(argv), (found or bare)[0].strip())  # type: ignore[index]  # one of them is there


def modinfos(host: Probes) -> tuple[tuple[str, ...], ...]:
    """Return the questions about the module of the running kernel that can be answered here."""
    usual = ("modinfo", "nvidia")
    return host.forms(lambda argv: argv[0] == "modinfo" and "-k" not in argv and argv[-1] == "nvidia", usual) or (usual,)


def _user(host: Probes, events: Events, packages: Packages) -> Iterator[Fact]:
    for path in (*host.glob("/usr/lib/*-linux-gnu/libnvidia-ml.so.*.*"), *host.glob("/usr/lib64/libnvidia-ml.so.*.*")):
        found = re.search(r"\.so\.(\d+\.\d+(?:\.\d+)?)$", path)
        if found:
            yield fact(found[1], path, path)
    for row in packages.driver("library", "tool", "meta"):
        # The libraries of another architecture may lag behind and harm nobody but 32-bit programs.
        if row.driver and row.arch not in ("i386", "i686", "armhf"):
            yield Fact(place=row.place, value=row.driver)
    for event in events.all(ApiMismatch):
        if event.client:
            yield Fact(place=event.place, value=event.client)
    yield from (Fact(place=event.place, value=event.version) for event in _beside(events))
    yield from _listed(events)
    if not packages.rows:
        yield from _changed(events)
    for error in events.all(NvmlError):
        if error.library:
            yield CutFact(place=error.place, value=error.library)
    for argv in host.forms(lambda argv: argv[0] == "nvidia-smi"):
        said = re.search(r"^.*NVIDIA-SMI\s+version\s*:\s*([\d.]+).*$", host.run(argv).stdout, re.MULTILINE)
        if said is not None:
            yield Fact(place=Place(source=" ".join(argv), text=said[0].strip()), value=said[1])


def _flavor(host: Probes, events: Events) -> Flavor | None:
    text = host.read(_PROC) or ""
    if "Kernel Module" in text:
        return "open" if "Open Kernel Module" in text else "proprietary"
    greeting = events.first(Loading)
    if greeting is not None:
        return greeting.flavor
    for argv in modinfos(host):
        license_ = re.search(r"^license:\s*(.+)$", host.run(argv).stdout, re.MULTILINE)
        if license_:
            return "open" if "GPL" in license_[1] else "proprietary" if "NVIDIA" in license_[1] else None
    return None
