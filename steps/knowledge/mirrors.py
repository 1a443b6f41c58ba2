"""A mirror or a folder that the profile names: whether it has the wanted builds, or would answer with those without CUDA."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from steps.compat.wheels import cuda_of
from steps.host.web import Unreachable, Web, within
from steps.managers import index
from steps.managers.index import Garbled, Wheel
from steps.model.action import Run
from steps.model.base import Words, phrase
from steps.model.finding import Finding, Severity
from steps.model.machine import Machine
from steps.model.offers import suits
from steps.model.plan import Plan

if TYPE_CHECKING:
    from steps.host.base import Host

SECONDS = 8.0
ASKED = ("torch", "torchvision", "torchaudio", "tensorflow", "jaxlib")
"""What comes in builds of which a mirror may have the wrong one."""
_OPTIONS = ("--index-url", "--extra-index-url", "--find-links")
_EXACT = re.compile(r"([A-Za-z][\w.-]*)(?:\[[\w,-]+\])?===?([\w.+!]+)")
_CUDA = re.compile(r"(nvidia|cuda)-")
Answers = Sequence[tuple[Wheel, ...] | None]


def looked_at(machine: Machine, plan: Plan, action: Run, host: Host, *, seconds: float = SECONDS) -> tuple[Finding, ...]:
    """Return what the named mirrors contradict of an installing action; empty where the profile names none.

    Each is asked what the installer will ask it; one that does not answer in time is said to be out of reach.
    """
    network = plan.profile.network
    if not (network.pypi or network.torch_index or network.find_links):
        return ()
    places = tuple(after for word, after in zip(action.argv, action.argv[1:], strict=False) if word in _OPTIONS)
    wanted = [(exact[1], exact[2]) for word in action.argv if (exact := _EXACT.fullmatch(word)) and exact[1] in ASKED]
    installer = plan.target.installer
    web = Web(
        proxy=network.proxy or installer.proxy,
        certificates=network.ca_file or installer.certificates,
        seconds=seconds,
        local=any(urlsplit(one).scheme == "file" for one in places),
    )
    questions = [partial(_wheels, web, host, place, name) for name, _ in wanted for place in places]
    told = within(seconds, questions)
    found: list[Finding] = []
    silent: dict[str, None] = {}
    for at, (name, version) in enumerate(wanted):
        answers = told[at * len(places) : (at + 1) * len(places)]
        silent |= dict.fromkeys(place for place, answer in zip(places, answers, strict=True) if answer is None)
        found += _judged(machine, plan, web, name, version, answers)
    return (*found, *(_unreachable(place) for place in silent))


def _wheels(web: Web, host: Host, place: str, name: str) -> tuple[Wheel, ...] | None:
    """Return the wheels of a project at an index or in a folder; `None` when it does not answer."""
    if place.startswith("/"):
        files = host.glob(f"{place}/{name.replace('-', '_')}-*.whl")
        return tuple(wheel for file in files if (wheel := index.wheel_of(file.rpartition("/")[2], name)))
    try:
        return index.project(web, place, name)
    except (Unreachable, Garbled):
        return None


def _judged(machine: Machine, plan: Plan, web: Web, name: str, version: str, answers: Answers) -> Iterator[Finding]:
    """Yield what is wrong with one requirement: nobody has it, or what is had under its name is the build without CUDA."""
    known = tuple(wheel for answer in answers if answer for wheel in answer)
    python, arch = plan.profile.environment.python, machine.os.arch
    same = tuple(wheel for wheel in known if _is(wheel.version, version) and suits(wheel.tag, python, arch))
    wheel = f"{name} {version}"
    if not same:
        if all(answer is not None for answer in answers):
            yield _lacking(wheel, version, known, python, arch)
        return
    variant = plan.profile.frameworks.get("variant")
    if name != "torch" or "+" in version or cuda_of(variant) is None:
        return
    plain = next((one for one in same if "+" not in one.version and one.address), None)
    said = within(SECONDS, [partial(_metadata, web, plain)])[0] if plain else None
    if said and not any(_CUDA.match(need) for need in said):
        because = (phrase("general.because.mirror-metadata", wheel=wheel),)
        yield _finding("mirror-other-build", wheel, because, variant=variant or "")


def _metadata(web: Web, wheel: Wheel) -> tuple[str, ...] | None:
    """Return what a wheel says that it requires, without fetching it; `None` when that cannot be read."""
    try:
        return index.metadata(web, wheel).requires
    except (Unreachable, Garbled):
        return None


def _is(have: str, want: str) -> bool:
    """Return whether a wheel is of a wanted version: one that names no build is met by every build, as installers do."""
    return have == want or ("+" not in want and have.partition("+")[0] == want)


def _lacking(wheel: str, version: str, known: tuple[Wheel, ...], python: str | None, arch: str | None) -> Finding:
    """Return that a build is missing, with what there is of the release in its place."""
    public = version.partition("+")[0]
    near = dict.fromkeys(one.version for one in known if one.version.partition("+")[0] == public)
    newest = dict.fromkeys(one.version for one in known[-3:])
    has = ", ".join(list(near)[:6] or list(newest)) or "–"
    because = (phrase("general.because.mirror-has", has=has, python=python or "?", arch=arch or "?"),)
    return _finding("mirror-lacks-build", wheel, because)


def _unreachable(place: str) -> Finding:
    """Return that a mirror does not answer."""
    site = urlsplit(place).hostname or place
    return _finding("mirror-unreachable", site, (phrase("general.because.mirror-silent", site=site),), "warning")


def _finding(code: str, subject: str, because: tuple[Words, ...], severity: Severity = "error", **params: str) -> Finding:
    """Return a finding about a mirror."""
    return Finding(code=code, severity=severity, step="frameworks", subject=subject, params=params, because=because)
