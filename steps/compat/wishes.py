"""What a person asks for: `torch`, `torch==2.7.*`, `cuda==12.8`, `driver==570`, `python==3.11`, `tensorflow`, `jax`."""

from __future__ import annotations

import difflib
import re

from steps.catalog import frameworks as catalog
from steps.catalog import stack
from steps.catalog.versions import line, number
from steps.errors import InputError
from steps.model.base import Record

COMMON = ("torch", "torchvision", "torchaudio", "tensorflow", "jax")
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

    def at(self, version: str) -> Wish:
        """Return the same wish for another version."""
        return Wish(text=f"{self.name}=={version}", name=self.name, version=version)


def parse(text: str) -> Wish:
    """Return the wish in `text`; raises `InputError` when it is malformed or names what we do not know."""
    found = re.fullmatch(r"\s*([A-Za-z][\w.-]*)\s*(?:==?\s*([\w.]+?)(?:\.\*)?)?\s*", text)
    if not found:
        raise InputError("wish-malformed", wish=text.strip())
    name, version = found.group(1).lower(), found.group(2)
    wish = Wish(text=text.strip(), name=name, version=version)
    if version is not None and not _known(name, version):
        raise _unknown(wish)
    if version is None and name not in (*STACK, *COMMON) and name not in _names():
        raise _unknown(wish)
    return wish


def opposed(wishes: tuple[Wish, ...]) -> tuple[Wish, Wish] | None:
    """Return the first two wishes for different versions of one thing; `None` where there are none."""
    told = [wish for wish in wishes if wish.version is not None]
    return next(((one, other) for at, one in enumerate(told) for other in told[at + 1 :] if _opposed(one, other)), None)


def _opposed(one: Wish, other: Wish) -> bool:
    """Return whether no version is meant by both: neither names a line that the other is in."""
    if one.name != other.name or one.version == other.version:
        return False
    if one.name == "variant":
        return True
    short, long = sorted((number(one.version or ""), number(other.version or "")), key=len)
    return long[: len(short)] != short


def _unknown(wish: Wish) -> InputError:
    """Return the error for a wish that the tables do not hold: its version, or its name with the nearest one that they hold."""
    have = sorted(_versions(wish.name), key=number)
    if have:
        return InputError("wish-version", name=wish.name, version=wish.version or "", newest=have[-1])
    near = difflib.get_close_matches(wish.name, (*STACK, *COMMON, *_names()), n=1)
    return InputError("wish-near", wish=wish.text, near=near[0]) if near else InputError("wish-unknown", wish=wish.text)


def _names() -> set[str]:
    """Return the distribution names of the catalogue beside the common ones."""
    return {*catalog.discontinued(), *(row.package for row in catalog.others())}


def _known(name: str, version: str) -> bool:
    """Return whether the tables hold this version, or a release of this line."""
    need = number(version)
    if name == "variant":
        return any(row.name == version for release in catalog.torch_releases() for row in release.variant)
    if name == "python":
        return version in _versions(name)
    if name in catalog.discontinued():
        return True
    return bool(need) and any(number(one)[: len(need)] == need for one in _versions(name))


def _versions(name: str) -> list[str]:
    """Return every version of something that the tables hold."""
    have: dict[str, list[str]] = {
        "driver": [version for row in stack.branches().values() for version in (row.name, row.latest)],
        "cuda": [version for row in stack.cudas().values() for version in (row.version, row.latest)],
        "cudnn": [row.latest for row in stack.cudnns()],
        "nccl": [row.version for row in stack.nccls()],
        "python": [python for row in catalog.torch_releases() for python in row.pythons],
        "torch": [row.version for row in catalog.torch_releases()],
        "tensorflow": [row.version for row in catalog.tensorflow_releases()],
        "jax": [row.version for row in catalog.jax_releases()],
        "torchvision": [version for row in catalog.torch_releases() for version in row.torchvision],
        "torchaudio": [version for row in catalog.torch_releases() for version in row.torchaudio],
    }
    return have.get(name) or [row.version for row in catalog.others() if row.package == name]


def neighbours(wish: Wish) -> list[str]:
    """Return the other versions of what is wished for, nearest first, the newer of two equally near ones before the older."""
    if wish.version is None or wish.name in catalog.discontinued():
        return []
    if wish.name == "variant":
        return _other_variants(wish.version)
    parts = {"driver": 1, "cuda": 2, "cudnn": 2, "nccl": 2, "python": 2}.get(wish.name, 9)
    known = sorted({line(version, parts) for version in _versions(wish.name)}, key=number)
    need = number(wish.version)
    here = max((at for at, version in enumerate(known) if number(version)[: len(need)] <= need), default=0)
    others = [at for at, version in enumerate(known) if number(version)[: len(need)] != need[:parts]]
    return [known[at] for at in sorted(others, key=lambda at: (abs(at - here), -at))]


def _other_variants(variant: str) -> list[str]:
    """Return the other variants of PyTorch: those of the same kind by how near their CUDA or ROCm is, the processor's last."""
    known = {row.name for release in catalog.torch_releases() for row in release.variant} - {variant, "xpu"}
    kind = variant[:2]
    same = sorted((one for one in known if one[:2] == kind and one != "cpu"), key=_line)
    at = next((place for place, one in enumerate(same) if _line(one) > _line(variant)), len(same))
    near = sorted(range(len(same)), key=lambda place: (place - at if place >= at else at - place - 1, -place))
    return [*(same[place] for place in near), *(("cpu",) if variant != "cpu" else ())]


def _line(variant: str) -> tuple[int, ...]:
    """Return the number in a variant's name: `cu126` is (126,), `rocm6.3` is (6, 3)."""
    return number(variant.lstrip("abcdefghijklmnopqrstuvwxyz"))
