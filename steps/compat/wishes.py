"""What a person asks for: `torch`, `torch==2.7.*`, `cuda==12.8`, `driver==570`, `python==3.11`, `tensorflow`, `jax`."""

from __future__ import annotations

import re

from steps.catalog import frameworks as catalog
from steps.catalog import stack
from steps.catalog.versions import number
from steps.errors import InputError
from steps.model.base import Record

STACK = ("driver", "cuda", "cudnn", "nccl", "python", "variant")


class Wish(Record):
    """One wish; `version` is a line or a release, `None` for any."""

    text: str
    name: str
    version: str | None = None

    @property
    def bare(self) -> Wish:
        """The same wish for any version."""
        return Wish(text=self.name, name=self.name)


def parse(text: str) -> Wish:
    """Return the wish in `text`; raises `InputError` when it is malformed or names what we do not know."""
    found = re.fullmatch(r"\s*([A-Za-z][\w.-]*)\s*(?:==?\s*([\w.]+?)(?:\.\*)?)?\s*", text)
    if not found:
        raise InputError("wish-malformed", wish=text.strip())
    name, version = found.group(1).lower(), found.group(2)
    wish = Wish(text=text.strip(), name=name, version=version)
    if version is not None and not _known(name, version):
        raise InputError("wish-unknown", wish=text.strip())
    if version is None and name not in (*STACK, *_names()):
        raise InputError("wish-unknown", wish=text.strip())
    return wish


def _names() -> set[str]:
    """Return every distribution name of the catalogue."""
    return {"torch", "torchvision", "torchaudio", "tensorflow", "jax", *catalog.discontinued(), *(row.package for row in catalog.others())}


def _known(name: str, version: str) -> bool:
    """Return whether the tables hold this version, or a release of this line."""
    need = number(version)
    if name == "variant":
        return any(row.name == version for release in catalog.torch_releases() for row in release.variant)
    if name == "python":
        return any(version in release.pythons for release in catalog.torch_releases())
    have: dict[str, list[str]] = {
        "driver": [version for row in stack.branches().values() for version in (row.name, row.latest)],
        "cuda": [version for row in stack.cudas().values() for version in (row.version, row.latest)],
        "cudnn": [row.latest for row in stack.cudnns()],
        "nccl": [row.version for row in stack.nccls()],
        "torch": [row.version for row in catalog.torch_releases()],
        "tensorflow": [row.version for row in catalog.tensorflow_releases()],
        "jax": [row.version for row in catalog.jax_releases()],
        "torchvision": [version for row in catalog.torch_releases() for version in row.torchvision],
        "torchaudio": [version for row in catalog.torch_releases() for version in row.torchaudio],
    }
    if name in catalog.discontinued():
        return True
    known = have.get(name) or [row.version for row in catalog.others() if row.package == name]
    return bool(need) and any(number(one)[: len(need)] == need for one in known)
