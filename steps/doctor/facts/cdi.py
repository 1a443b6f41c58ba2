"""The CDI specifications of a machine: which driver's files each names, and which of them are not there."""

from __future__ import annotations

import re

from steps.detect.probes import Probes
from steps.doctor.told import Place, Told

_FOLDERS = ("/etc/cdi", "/var/run/cdi", "/run/cdi")
"""Where engines look, the one that counts less first: what a later folder says of a device is taken. The last is the one before it."""
_FILES = tuple(f"{folder}/nvidia*.{kind}" for folder in _FOLDERS for kind in ("yaml", "json"))
USUAL = "/etc/cdi/nvidia.yaml"
_OF_DRIVER = re.compile(r"\S*\.so\.(\d{3}\.\d+(?:\.\d+)?)")


class Spec(Told):
    """One specification; `version` is the driver's in the names of its files, `missing` the versioned files that are not there."""

    path: str
    version: str
    missing: tuple[str, ...] = ()


def specs(host: Probes) -> tuple[Spec, ...]:
    """Return the specifications whose files carry a driver's version, in the order of their weight; shown ones of a report as well."""
    paths = {path.removeprefix("/var"): path for pattern in reversed(_FILES) for path in reversed(host.glob(pattern))}
    texts = [(path, path, host.read(path) or "") for path in reversed(paths.values())]
    for argv in host.forms(lambda argv: argv[0] in ("cat", "grep", "head") and "/cdi/" in " ".join(argv)):
        named = next((word for word in argv if "/cdi/" in word), USUAL)
        texts.append((" ".join(argv), named, host.run(argv).stdout))
    return tuple(spec for source, path, text in texts if (spec := _spec(host, source, path, text)) is not None)


def _spec(host: Probes, source: str, path: str, text: str) -> Spec | None:
    first = _OF_DRIVER.search(text)
    if first is None:
        return None
    named = dict.fromkeys(word for line in re.findall(r"hostPath\"?: *(.+)", text) for word in re.findall(r"/[^\s\",]+", line))
    missing = tuple(one for one in named if _OF_DRIVER.fullmatch(one) and host.exists(one) is False)
    return Spec(place=Place(source=source, text=first[0]), path=path, version=first[1], missing=missing)
