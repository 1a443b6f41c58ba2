"""Repositories that will not: a key, an address, a suite, content of two states."""

from __future__ import annotations

import re
from collections.abc import Iterator

from steps.doctor.events.packages import Unmet
from steps.doctor.events.repositories import (
    BadSignature,
    Failed,
    HashMismatch,
    KeyMissing,
    MetadataStale,
    NoRelease,
    OfferedFrom,
    SignedByConflict,
    UnexpectedSize,
)
from steps.doctor.events.runs import NoSpace
from steps.doctor.evidence import Evidence
from steps.doctor.facts.repositories import codenames, token
from steps.doctor.rules.apt_versions import OF_VENDORS, wants_old_branch
from steps.doctor.rules.base import CERTAIN, LIKELY, POSSIBLE, STRONG, Answer, found, out, rule
from steps.doctor.told import Fact, Told, fact

_BASE = re.compile(
    r"libc6|libc-bin|libssl\S*|libstdc\+\+6|libgcc-s1|libtinfo\d|libncurses\S*|python3(?:\.\d+)?|libpython3\S*|libicu\d+|glibc|libxml2\S*|libffi\d|libjson-c\d|libelf\S*|xorg-video-abi-\S+"
)


@rule("apt-repo-key-rotated")
def key_rotated(seen: Evidence) -> Answer:
    """A repository for this very release is signed with a key that is not here."""
    missing = next((event for event in seen.all(KeyMissing) if _vendor(event.url)), None)
    if missing is None:
        return None
    foreign = _foreign(seen, missing.url or "")
    if foreign is not None:
        return out(foreign, missing)
    known = seen.system.id is not None and token(missing.url or "") is not None
    sure = CERTAIN if known else STRONG
    return found(
        sure - 0.1 if missing.weak else sure, missing, _release(seen), key=missing.key or "?", variant="weak" if missing.weak else ""
    )


def _vendor(url: str | None) -> bool:
    """Return whether an address, or the name of a repository or package, is a GPU vendor's."""
    return bool(url and re.search(r"nvidia|cuda|radeon|rocm|habana|intel\.com/graphics", url))


def _release(seen: Evidence) -> Fact | None:
    """Return what the machine is, or `None`; Debian's testing has no number."""
    if seen.system.id is None:
        return None
    if seen.system.version is None:
        return fact(seen.system.id, "/etc/os-release", f"ID={seen.system.id}")
    value = f"{seen.system.id}{seen.system.version.replace('.', '')}"
    return fact(value, "/etc/os-release", f"ID={seen.system.id} VERSION_ID={seen.system.version}")


def _foreign(seen: Evidence, url: str) -> Fact | None:
    """Return this machine's release where an address names another distribution or release, else `None`."""
    theirs, mine = token(url), _release(seen)
    if theirs is None or mine is None:
        return None
    name, number = re.match(r"([a-z]+)(\d*)", theirs).groups()  # type: ignore[union-attr]  # a token begins with letters
    version = (seen.system.version or "").replace(".", "")
    family = {seen.system.id, *seen.system.like}
    cousins = {"rhel": {"rhel", "centos", "rocky", "almalinux", "ol", "fedora"}, "sles": {"sles", "suse", "opensuse"}}.get(name, {name})
    if not family & cousins:
        return mine
    # Ubuntu, and what is made of it, is Debian's family and takes nothing that was built for a Debian.
    if name == "debian" and "ubuntu" in family:
        return mine
    # A distribution made of another one counts its own releases.
    if seen.system.id not in cousins and name in ("ubuntu", "debian"):
        return None
    own = version if name in ("ubuntu", "fedora") else (seen.system.version or "").partition(".")[0]
    return None if own in (number, "") or not number else mine


@rule("repo-for-other-distro")
def other_distribution(seen: Evidence) -> Answer:
    """An address, a suite, or what its packages need is another release's."""
    for event, url in _addresses(seen):
        mine = _foreign(seen, url)
        if mine is not None:
            return found(CERTAIN, event, mine, theirs=token(url) or "?", mine=mine.value)
    base = next((unmet for unmet in seen.all(Unmet) if _wants_other_base(unmet)), None)
    for source in seen.repositories:
        mine = _foreign(seen, source.url)
        if mine is not None and (base or seen.has(Unmet) or seen.has(NoRelease)):
            return found(CERTAIN, source, mine, base, theirs=source.release or "?", mine=mine.value)
        if mine is not None and not seen.driver_answers:
            return found(POSSIBLE, source, mine, theirs=source.release or "?", mine=mine.value)
    suite = _foreign_suite(seen)
    if suite is not None:
        return found(STRONG, *suite, theirs=suite[0].value, mine=suite[1].value)
    if base is not None:
        return found(STRONG, base, _release(seen), theirs=base.version or base.wanted, mine=base.other or "-", variant="packages")
    return _package_suffix(seen)


def _addresses(seen: Evidence) -> Iterator[tuple[Told, str]]:
    """Yield every message about a repository with its address."""
    for missing in seen.all(KeyMissing):
        yield missing, missing.url or ""
    for absent in seen.all(NoRelease):
        yield absent, absent.url
    for bad in seen.all(BadSignature):
        yield bad, bad.url or ""
    for offer in seen.all(OfferedFrom):
        yield offer, offer.repository
    for failed in seen.all(Failed):
        yield failed, failed.url


def _wants_other_base(unmet: Unmet) -> bool:
    """Return whether a vendor's package needs a library of the system that this release has in another version, or not at all."""
    # A library whose name counts its interface, and that nobody offers, is another release's.
    library = (
        unmet.why == "absent" and re.fullmatch(r"lib[a-z][a-z0-9+.-]*?\d+(?:t64)?", unmet.wanted) and not OF_VENDORS.search(unmet.wanted)
    )
    if (
        not (_BASE.fullmatch(unmet.wanted) or (library and unmet.name))
        or "xorg" in unmet.wanted
        or (unmet.name and not OF_VENDORS.search(unmet.name))
    ):
        return False
    return unmet.why in ("other", "absent") or (unmet.why == "refused" and unmet.relation in (">=", ">>"))


def _foreign_suite(seen: Evidence) -> tuple[Fact, Fact] | None:
    """Return a suite of a vendor's source that is another release's, and this machine's release, or `None`."""
    mine = _release(seen) if seen.system.version else None
    for source in seen.repositories:
        known = codenames().get((source.suite or "").partition("-")[0])
        if known and mine and _vendor(source.url) and seen.system.id in known[0] and known[1] != seen.system.version:
            return Fact(place=source.place, value=source.suite or "?"), mine
    return _refused_suite(seen, mine) if mine is not None else None


_OF_LAUNCHPAD = re.compile(r"https?://ppa\.launchpad(?:content)?\.net/")
"""Its archives are for Ubuntu alone, and each suite is the name of a release."""


def _refused_suite(seen: Evidence, mine: Fact) -> tuple[Fact, Fact] | None:
    """Return the suite of another release that a server has not, and this machine's release, or `None`."""
    named = {release: name for name, (ids, release) in codenames().items() if seen.system.id in ids}
    own = seen.system.codename or named.get(seen.system.version or "")
    for absent in seen.all(NoRelease):
        suite = (absent.suite or "").partition("-")[0]
        if not suite or own in (None, suite):
            continue
        known = codenames().get(suite)
        listed = known is not None and _vendor(absent.url) and seen.system.id in known[0]
        if listed or (seen.system.id == "ubuntu" and _OF_LAUNCHPAD.match(absent.url)):
            return Fact(place=absent.place, value=suite), mine
    return None


def _package_suffix(seen: Evidence) -> Answer:
    """Decide by the release in a package's own version, as AMD's repository writes it."""
    mine = _release(seen) if seen.system.version else None
    if mine is None or seen.system.id != "ubuntu":
        return None
    for row in seen.packages.rows:
        told = re.search(r"[.-](\d\d\.\d\d)$", row.version)
        if told and re.match(r"amdgpu|rocm|hip", row.name) and told[1] != seen.system.version:
            return found(POSSIBLE, row, mine, theirs=told[1], mine=mine.value, variant="packages")
    return None


@rule("apt-signed-by-conflict")
def signed_by(seen: Evidence) -> Answer:
    """Two entries name different keys for one repository."""
    said = seen.first(SignedByConflict)
    if said is None:
        return None
    twice = [source for source in seen.repositories if source.url.rstrip("/") == said.url.rstrip("/")]
    if not (said.one and said.other):
        return found(CERTAIN, said, *twice[:2], url=said.url, one=said.one or said.other or "?", variant="none")
    return found(CERTAIN, said, *twice[:2], url=said.url, one=said.one, other=said.other)


@rule("http-cache-corrupts-repo-data")
def corrupted(seen: Evidence) -> Answer:
    """What came has the right size and another content, or a signature by a known key does not fit."""
    bad = seen.first(BadSignature, lambda event: event.url is None or not event.url.startswith("https:"))
    same = next((event for event in seen.all(HashMismatch) if event.expected is not None and event.expected == event.received), None)
    unknown = next((event for event in seen.all(HashMismatch) if event.expected is None or event.received is None), None)
    if seen.has(HashMismatch, lambda event: None not in (event.expected, event.received) and event.expected != event.received):
        other = seen.first(HashMismatch, lambda event: event.expected != event.received)
        return out(other)
    event = same or bad or unknown
    if event is None or seen.first(NoSpace):
        return None
    url = event.url or ""
    if url.startswith("https:"):
        return found(POSSIBLE - 0.1, event, url=url)
    if event is unknown:
        return found(POSSIBLE + 0.05, event, url=url or "?")
    return found(CERTAIN if url else STRONG, event, url=url or "?")


@rule("repo-inconsistent-on-server")
def inconsistent(seen: Evidence) -> Answer:
    """The server's files are of two states, or nobody offers the members of one version."""
    size = seen.first(UnexpectedSize)
    other = seen.first(HashMismatch, lambda event: None not in (event.expected, event.received) and event.expected != event.received)
    if size or other or seen.first(MetadataStale):
        return found(CERTAIN if size or other else STRONG, size, other, seen.first(MetadataStale))
    absent = [event for event in seen.all(Unmet) if event.why == "absent" and event.version and OF_VENDORS.search(event.wanted)]
    exact = [event for event in absent if event.relation == "=" or (event.version and OF_VENDORS.search(event.name))]
    refused = [event for event in seen.all(Unmet) if event.why in ("refused", "other") and OF_VENDORS.search(event.wanted)]
    if not absent and not refused:
        lone = next((event for event in seen.all(Unmet) if event.why == "absent" and _of_one_branch(event)), None)
        return found(POSSIBLE + 0.1, lone, variant="members") if lone is not None else None
    old = any(wants_old_branch(event) for event in (*exact, *refused))
    if exact and not old and not any(_wants_other_base(event) for event in seen.all(Unmet)):
        return found(STRONG if len(exact) > len(refused) else LIKELY - 0.1, *exact[:3], variant="members")
    return None


def _of_one_branch(event: Unmet) -> bool:
    """Return whether a package of the driver wants another one with the same branch in its name."""
    mine, theirs = re.search(r"-(\d{3})\b", event.name), re.search(r"-(\d{3})\b", event.wanted)
    return mine is not None and theirs is not None and mine[1] == theirs[1] and bool(OF_VENDORS.search(f"{event.name} {event.wanted}"))
