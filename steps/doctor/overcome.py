"""Troubles that later success in the same log ended: after the same was done again, on the same machine, and with a reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from steps.doctor.events.base import Event, Events
from steps.doctor.events.cuda import DriverUnseen
from steps.doctor.events.kernel import ApiMismatch
from steps.doctor.events.mends import Asked, Mended, Viewed
from steps.doctor.events.nvml import NvmlError
from steps.doctor.events.outcomes import Booted, CardsListed, Proceeded, Reached, SetUp
from steps.doctor.events.proxies import TlsFailed
from steps.doctor.events.repositories import BadSignature, Failed, HashMismatch, KeyMissing, NoRelease
from steps.doctor.events.runs import Locked, PipRan
from steps.doctor.events.typed import Command

_OF_REPOSITORIES = (KeyMissing, BadSignature, HashMismatch, NoRelease, Failed, TlsFailed)
"""What a repository has behind it that gives its list afterwards."""
_CONTAINERS = frozenset(("docker", "podman", "nerdctl", "kubectl", "oc", "crictl"))
_INSTALLERS = frozenset(("apt", "apt-get", "aptitude", "dpkg"))
_ONLY_SHOWN = frozenset(("-s", "--simulate", "--just-print", "--dry-run", "--no-act", "--recon"))
_SUITE = r"[ /](?:dists/)?(?P<suite>[\w.+-]+)(?:/| +)(?:In)?Release\b"
_RUN = re.compile(r"^(?:\w+|[^\s\d:：]{1,12})\s?[:：](\d+) ", re.MULTILINE)


def in_log_overcome(events: Events) -> Callable[[Event], bool]:
    """Return the test for events that later success in the same log ended."""
    inside = {one.place.source for one in events.all(Command) if one.program in _CONTAINERS}

    def over(event: Event) -> bool:
        if isinstance(event, Locked):
            return any(_unlocked(events, event, done) for done in _behind((*events.all(SetUp), *events.all(Proceeded)), event))
        if isinstance(event, TlsFailed) and "Retrying (Retry(" in event.place.text and _behind(events.all(PipRan), event):
            return True
        if isinstance(event, _OF_REPOSITORIES):
            return any(_answers(events, event, event.url, one) for one in _behind(events.all(Reached), event))
        # What fails inside of a container is not mended by a card that the host lists.
        if isinstance(event, ApiMismatch) or (isinstance(event, NvmlError) and event.trouble == "mismatch"):
            return event.place.source not in inside and any(_mended(events, event, one) for one in _behind(events.all(CardsListed), event))
        return False

    return over


def served(events: Events, event: DriverUnseen) -> bool:
    """Return whether what missed the driver listed cards in the same run: so old images do in WSL, where the driver has no module."""
    if "was not detected" not in event.place.text:
        return False
    listed = _behind(events.all(CardsListed), event)
    return any(not _between((*events.all(Command), *events.all(Viewed), *events.all(Asked)), event, one) for one in listed)


def _behind(later: Iterable[Event], event: Event) -> list[Event]:
    """Return those of `later` that stand behind an event in its source."""
    return [one for one in later if one.place.source == event.place.source and one.place.order > event.place.order]


def _between(kinds: Iterable[Event], event: Event, done: Event) -> list[Event]:
    """Return what stands between two events of one source, in order."""
    found = [one for one in _behind(kinds, event) if one.place.order < done.place.order]
    return sorted(found, key=lambda one: one.place.order)


def _unlocked(events: Events, event: Event, done: Event) -> bool:
    """Return whether what got on is the command that waited, or one that did the same again: no simulation, no other's log."""
    typed = _between((*events.all(Command), *events.all(Viewed)), event, done)
    if not typed:
        return True
    last = typed[-1]
    return isinstance(last, Command) and last.program in _INSTALLERS and not _ONLY_SHOWN & set(last.words)


def _answers(events: Events, event: Event, url: str | None, done: Event) -> bool:
    """Return whether a repository that failed gave its list in a later call: the same address, and the same release below it."""
    if not isinstance(done, Reached) or url is None or not url.rstrip("/").startswith(done.url.rstrip("/")):
        return False
    ours, theirs = _suite(event.place.text, done.url), _suite(done.place.text, done.url)
    if ours is not None and theirs is not None and ours != theirs:
        return False
    # apt numbers what it asks for: a higher number is another entry of the same call.
    first, second = _RUN.search(event.place.text), _RUN.search(done.place.text)
    again = first is None or second is None or int(second[1]) <= int(first[1])
    return again or bool(_between((*events.all(Command), *events.all(Mended)), event, done))


def _suite(text: str, url: str) -> str | None:
    """Return the release that is named behind an address, or `None`."""
    found = re.search(rf"{re.escape(url.rstrip('/'))}/?{_SUITE}", text)
    return found["suite"] if found else None


def _mended(events: Events, event: Event, done: Event) -> bool:
    """Return whether a card was listed on the machine that had the mismatch, after something that can mend it."""
    if not _between((*events.all(Mended), *events.all(Booted)), event, done):
        return False
    asked = [one for one in events.all(Asked) if one.place.source == event.place.source]
    before = [one for one in asked if one.place.order < event.place.order][-1:]
    after = [one for one in asked if one.place.order < done.place.order][-1:]
    hosts = {one.host for one in (*before, *after) if one.host is not None}
    return len(hosts) < 2 and not any(one.elsewhere for one in (*before, *after))
