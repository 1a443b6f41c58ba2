"""Kernel modules: which are loaded, which lie on disk for which kernel, what DKMS and modprobe's settings say."""

from __future__ import annotations

import re
from collections.abc import Iterator

from steps.detect.modules import DKMS
from steps.detect.places import PLACES
from steps.detect.probes import Probes
from steps.detect.run_file import leftovers as leftovers_of
from steps.doctor.told import Fact, Place, Told, fact
from steps.host.rooted import version_key
from steps.model.base import Record


class Dkms(Told):
    """One line of `dkms status`; `kernel` is `None` while nothing was built."""

    module: str
    version: str
    kernel: str | None
    state: str


class Setting(Told):
    """One line of modprobe's configuration that concerns a GPU's module."""

    verb: str
    module: str
    rest: str


class OnDisk(Told):
    """A file of a driver's module for one kernel."""

    kernel: str
    path: str
    name: str


class Modules(Record):
    """What is known; `None` means that nobody looked."""

    loaded: tuple[str, ...] | None = None
    files: tuple[OnDisk, ...] | None = None
    """The files of NVIDIA's own modules (in-tree namesakes such as nvidiafb are none); `None` when no list was seen."""
    dkms: tuple[Dkms, ...] | None = None
    settings: tuple[Setting, ...] = ()
    leftovers: tuple[Fact, ...] = ()
    """What NVIDIA's own installer left on disk."""

    def loads(self, module: str) -> bool | None:
        """Return whether a module is loaded; `None` when no list was seen."""
        return None if self.loaded is None else module.replace("-", "_") in self.loaded

    def kernels(self, name: str = "nvidia") -> tuple[str, ...]:
        """Return the kernels for which a module lies on disk, the newest last."""
        return tuple(sorted({file.kernel for file in self.files or () if file.name == name}, key=version_key))


def modules(host: Probes) -> Modules:
    """Return what a machine tells of its modules."""
    return Modules(
        loaded=_loaded(host),
        files=_files(host),
        dkms=_dkms(host),
        settings=tuple(_settings(host)),
        leftovers=tuple(_leftovers(host)),
    )


def _loaded(host: Probes) -> tuple[str, ...] | None:
    text = host.read("/proc/modules")
    if text is None:
        text = host.run(("lsmod",)).stdout
    if not text:
        return None
    return tuple(name for name in re.findall(r"^(\w+)\s+\d+\s", text, re.MULTILINE))


_OURS = re.compile(
    r"/lib/modules/(?P<kernel>[^/\s]+)/(?P<where>\S*?)(?P<name>nvidia(?:[-_](?:drm|modeset|uvm|peermem))?)\.ko(?:\.\w+)?(?=\s|$)"
)


def _files(host: Probes) -> tuple[OnDisk, ...] | None:
    seen, found = False, []
    for argv in host.forms(lambda argv: argv[0] in ("find", "ls", "locate") and "/lib/modules" in " ".join(argv)):
        seen = True
        found += [_on_disk(match, " ".join(argv)) for match in _OURS.finditer(host.run(argv).stdout)]
    for kernel in host.listdir("/lib/modules") or ():
        if not kernel[:1].isdigit() or host.listdir(f"/lib/modules/{kernel}") is None:
            continue
        seen = seen or not host.host.rehearsal
        for place in PLACES:
            for path in host.glob(f"/lib/modules/{kernel}/{place}/nvidia*.ko*"):
                if match := _OURS.search(path):
                    found.append(_on_disk(match, path))
    return tuple(found) if seen or found else None


def _on_disk(found: re.Match[str], source: str) -> OnDisk:
    place = Place(source=source, text=found[0])
    return OnDisk(place=place, kernel=found["kernel"], path=found[0], name=found["name"].replace("-", "_"))


_DKMS = re.compile(r"^(?P<module>[\w.+-]+)(?:/|, ?)(?P<version>[^,:\s]+)(?:, ?(?P<kernel>[^,:\s]+), ?\w+)?: ?(?P<state>\w+)", re.MULTILINE)


def _dkms(host: Probes) -> tuple[Dkms, ...] | None:
    if not host.forms(lambda argv: argv == DKMS, *((DKMS,) if host.listdir("/var/lib/dkms") else ())):
        return None
    result = host.run(DKMS)
    if result.status == 127:
        return None
    source = " ".join(DKMS)
    return tuple(
        Dkms(
            place=Place(source=source, text=found[0]),
            module=found["module"],
            version=found["version"],
            kernel=found["kernel"],
            state=found["state"],
        )
        for found in _DKMS.finditer(result.text)
    )


_SETTING = re.compile(
    r"^(?:(?P<file>/[^:\s]+):)?(?:\d+:)?[ \t]*(?P<verb>blacklist|alias|install|options|softdep) +(?P<module>\S+)[ \t]*(?P<rest>.*)$",
    re.MULTILINE,
)
_CONCERNED = re.compile(r"nvidia|nouveau|nova|vfio|amdgpu|radeon|habana|gdrdrv")


def _shows_settings(argv: tuple[str, ...]) -> bool:
    return argv[0] in ("grep", "egrep", "cat") and any("/modprobe.d" in word for word in argv)


def _settings(host: Probes) -> Iterator[Setting]:
    texts = [
        (path, host.read(path) or "")
        for at in ("/etc/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d")
        for path in host.glob(f"{at}/*.conf")
    ]
    texts += [(" ".join(argv), host.run(argv).stdout) for argv in host.forms(_shows_settings)]
    for source, text in texts:
        for found in _SETTING.finditer(text):
            if _CONCERNED.search(found[0]):
                place = Place(source=found["file"] or source, text=found[0].strip())
                yield Setting(place=place, verb=found["verb"], module=found["module"], rest=found["rest"].strip())


def _leftovers(host: Probes) -> Iterator[Fact]:
    for path in leftovers_of(host):
        yield fact(path, path)
    for argv in host.forms(lambda argv: argv[0] in ("ls", "which", "locate")):
        if found := re.search(r"/\S*/nvidia-(?:uninstall|installer)\b\S*", host.run(argv).stdout):
            yield fact(found[0], " ".join(argv))
