"""Ranks that cannot reach each other: copies between cards, shared memory, InfiniBand, NVLink."""

from __future__ import annotations

import re

from steps.catalog import stack
from steps.doctor import numbers
from steps.doctor.events.nccl import (
    ConnectFailed,
    Hangs,
    MulticastFailed,
    NcclLine,
    NcclVersion,
    NoInterface,
    RdmaUnnamed,
    RegistrationFailed,
    SharedMemoryFailed,
)
from steps.doctor.events.peers import CardNamed, CollectiveDone, DirectCopies, KernelsTooLarge, P2pSwitch, P2pWrong, Redirects
from steps.doctor.evidence import Evidence
from steps.doctor.facts.cards import Card, of_name
from steps.doctor.facts.space import DF
from steps.doctor.rules.base import CERTAIN, LIKELY, POSSIBLE, STRONG, WEAK, Answer, found, out, rule
from steps.doctor.told import Fact, fact

# --- card to card ---------------------------------------------------------------------------------


def _symptom(seen: Evidence) -> Hangs | P2pSwitch | NcclLine | None:
    """Return what shows that a collective does not end, the plainest first; a machine at rest and a run that ended have none."""
    switched = seen.first(P2pSwitch, lambda event: event.helps is not None)
    return seen.first(Hangs) or switched or (None if seen.has(CollectiveDone) else seen.first(NcclLine) or seen.first(P2pSwitch))


def _useless(seen: Evidence) -> P2pSwitch | None:
    """Return the word that a run without direct copies fails as well."""
    return seen.first(P2pSwitch, lambda event: event.helps is False)


def _helped(seen: Evidence) -> P2pSwitch | None:
    return seen.first(P2pSwitch, lambda event: event.helps is True)


def _nvlink(seen: Evidence) -> bool:
    """Whether the cards are joined by NVLink, as `nvidia-smi topo` draws it."""
    return re.search(r"^GPU\d+\s.*\bNV\d+\b", seen.host.run(("nvidia-smi", "topo", "-m")).text, re.MULTILINE) is not None


def _redirects(seen: Evidence) -> tuple[Redirects, ...]:
    """Return what the bridges do with direct copies; a machine on which no collective fails is not asked."""
    return seen.heard(Redirects, *([("lspci", "-vvv")] if _symptom(seen) is not None else []))


@rule("pcie-acs-blocks-p2p")
def acs(seen: Evidence) -> Answer:
    """Bridges send direct copies up to the processor, and collectives hang."""
    told = _redirects(seen)
    redirects = next((event for event in told if event.on), None)
    if redirects is None:
        return out(told[0]) if told else None
    symptom, useless = _symptom(seen), _useless(seen)
    if symptom is None or _nvlink(seen):
        return None
    if useless is not None:
        return out(useless)
    # A line of NCCL's, or that somebody leaves direct copies out, does not say that anything hangs.
    plain = isinstance(symptom, NcclLine) or (isinstance(symptom, P2pSwitch) and symptom.helps is None)
    named = seen.first(SharedMemoryFailed) or seen.first(ConnectFailed) or seen.first(NoInterface)
    if named is not None:
        # A run that failed for a reason of its own, with nothing that hangs, says nothing of direct copies.
        return out(named) if plain else found(WEAK, redirects)
    helped = _helped(seen)
    return found(CERTAIN if helped else POSSIBLE if plain else STRONG, redirects, symptom, helped)


_ADA_GEFORCE = re.compile(r"RTX 40\d0")


def _cards(seen: Evidence) -> tuple[Card, ...]:
    """Return the cards that the machine lists, or else those that a program names in a log."""
    return seen.cards.cards or tuple(of_name(event.name, event.place) for event in seen.all(CardNamed))


def _ada_geforce(seen: Evidence) -> Card | None:
    return next((card for card in _cards(seen) if _ADA_GEFORCE.search(card.name or "")), None)


def _driver(seen: Evidence) -> Fact | None:
    """Return the driver's version: of the loaded module, else as nvidia-smi says it."""
    loaded = next(iter(seen.versions.loaded), None)
    if loaded is not None:
        return loaded
    said = seen.smi.driver_version
    return fact(said, "nvidia-smi", f"Driver Version: {said}") if said else None


_TAKEN_BACK = (525, 105)
"""The release that no longer offers copies between GeForce cards of Ada, which all before it did without having them."""


@rule("p2p-advertised-but-broken")
def p2p_broken(seen: Evidence) -> Answer:
    """A driver offers GeForce cards of Ada what they cannot do: an early one, or a patched module."""
    card, driver, symptom = _ada_geforce(seen), _driver(seen), _symptom(seen) or seen.first(P2pWrong)
    if card is None or symptom is None:
        return None
    redirects, useless = next((event for event in _redirects(seen) if event.on), None), _useless(seen)
    if redirects is not None or useless is not None:
        return out(redirects, useless)
    early = driver is not None and numbers.parts(driver.value)[:2] < _TAKEN_BACK
    patched = seen.first(NcclLine, lambda event: "p2p" in event.place.text.lower() and "patch" in event.place.text.lower())
    wrong, direct, helped = seen.first(P2pWrong), seen.first(DirectCopies), _helped(seen)
    # A driver that offers no direct copies would not hang for them: where they are used, or leaving them out helps, it was patched.
    offered = direct or helped
    if not early and patched is None and wrong is None and offered is None:
        return out(driver) if driver is not None else None
    told = {"driver": driver.value if driver else "?"}
    if early or wrong or patched:
        sure = LIKELY if not early and not wrong else STRONG
        return found(sure, driver, card, wrong, patched, helped, symptom, variant="" if early else "patched", **told)
    stuck = seen.has(Hangs)
    return found(LIKELY if direct and stuck else POSSIBLE + 0.1, direct, helped, card, driver, symptom, variant="patched", **told)


@rule("nccl-too-old-for-gpu")
def nccl_old(seen: Evidence) -> Answer:
    """A Blackwell card, and an NCCL from before its support."""
    card = next((card for card in _cards(seen) if card.architecture == "blackwell"), None)
    if card is None:
        return None
    version, useless = seen.first(NcclVersion), _useless(seen) or seen.first(KernelsTooLarge)
    least = stack.nccl_support("blackwell")
    helped = _helped(seen)
    if helped is not None:
        return out(helped)
    if version is not None and least is not None:
        if numbers.parts(version.version) >= numbers.parts(least.version):
            return out(version)
        return found(
            CERTAIN if useless or seen.has(Hangs) else LIKELY, version, card, useless, least=least.version, version=version.version
        )
    stuck = seen.first(Hangs)
    if useless is None or least is None:
        return None
    return found(LIKELY if stuck else POSSIBLE, useless, card, stuck, variant="unknown", least=least.version)


# --- shared memory --------------------------------------------------------------------------------


@rule("shm-too-small")
def shm_small(seen: Evidence) -> Answer:
    """There is no room left in /dev/shm."""
    full = seen.first(SharedMemoryFailed, lambda event: event.reason == "full" and not event.unsaid)
    unsaid = seen.first(SharedMemoryFailed, lambda event: event.reason == "full")
    refused = seen.first(SharedMemoryFailed, lambda event: event.reason != "full")
    if unsaid is None or (full is None and refused is not None):
        return out(refused) if refused is not None else None
    size = _shm(seen)
    sure = CERTAIN if size is not None else STRONG if full is not None else LIKELY
    return found(sure, full or unsaid, size, size=size.value if size else "?")


def _shm(seen: Evidence) -> Fact | None:
    """Return how large /dev/shm is, as `df` prints it."""
    for argv in seen.host.forms(lambda argv: argv[0] == "df", DF):
        line = re.search(r"^\S+\s+(\S+)\s.*\s/dev/shm$", seen.host.run(argv, timeout=5).stdout, re.MULTILINE)
        if line:
            return fact(line[1], " ".join(argv), line[0])
    return None


@rule("shm-not-shared-between-ranks")
def shm_apart(seen: Evidence) -> Answer:
    """A rank wants a segment that another one made, and it is not in its /dev/shm."""
    missing = seen.first(SharedMemoryFailed, lambda event: event.reason == "missing")
    if missing is None:
        full = seen.first(SharedMemoryFailed)
        return out(full) if full is not None else None
    return found(STRONG, missing)


# --- InfiniBand and NVLink ------------------------------------------------------------------------


_MANY_KIB = 1 << 20
"""From here on the limit alone is no reason for a device to refuse."""


@rule("memlock-limit-too-low")
def memlock(seen: Evidence) -> Answer:
    """An RDMA device cannot lock memory, and the limit is a number."""
    failed, unnamed = seen.first(RegistrationFailed), seen.first(RdmaUnnamed)
    if failed is None and unnamed is None:
        return None
    limit = seen.host.run(("ulimit", "-l")).stdout.strip()
    if failed is None:
        small = (numbers.whole(limit) or _MANY_KIB) < _MANY_KIB
        return found(LIKELY, unnamed, fact(limit, "ulimit -l"), limit=limit) if small else None
    if limit == "unlimited":
        return out(fact(limit, "ulimit -l"))
    known = fact(limit, "ulimit -l") if numbers.whole(limit) is not None else None
    return found(CERTAIN if known else LIKELY, failed, known, limit=limit or "?")


@rule("nvlink-sharp-setup-bad")
def multicast(seen: Evidence) -> Answer:
    """Multicast over NVLink cannot be set up; without it all works."""
    failed = seen.first(MulticastFailed, lambda event: event.code == 401) or seen.first(MulticastFailed)
    if failed is None:
        return None
    if failed.code == 802:
        return out(failed)
    return found(CERTAIN if failed.code == 401 else LIKELY, failed, code=failed.code or "?")
