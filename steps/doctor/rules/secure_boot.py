"""Secure Boot refuses a module: its key was never enrolled, or the kernel does not trust an enrolled one."""

from __future__ import annotations

import re

from steps.doctor.events.dkms import KeyRefused, MokState, MokTrustFailed
from steps.doctor.events.kernel import InsertFailed, Loading, NvlinkCore
from steps.doctor.evidence import Evidence
from steps.doctor.rules.base import CERTAIN, LIKELY, POSSIBLE, STRONG, Answer, found, out, rule
from steps.doctor.told import Fact, Told, fact

_SB = ("mokutil", "--sb-state")


def enabled(seen: Evidence) -> Fact | None:
    """Return what mokutil says of Secure Boot, or `None` when nobody asked."""
    said = seen.host.run(_SB).text.strip() if seen.asked(*_SB) else ""
    word = re.search(r"SecureBoot (enabled|disabled)", said)
    return fact(word[1], " ".join(_SB), word[0]) if word else None


def refused(seen: Evidence) -> Told | None:
    """Return the message that a module was refused for its signature, or `None`."""
    tried = seen.first(InsertFailed, lambda event: bool(re.search(r"Key was rejected|Required key", event.reason or "")))
    return tried or seen.first(KeyRefused)


def _keyring(seen: Evidence) -> Fact | None:
    """Return the line of the platform keyring that holds an owner's key which the machine keyring lacks, or `None`."""
    lists: dict[str, str] = {"platform": "", "machine": ""}
    sources: dict[str, str] = {}
    for argv in seen.host.host.recorded():
        ring = re.search(r"\.(platform|machine)\b", " ".join(argv))
        if argv[0] == "keyctl" and ring:
            lists[ring[1]], sources[ring[1]] = seen.host.run(argv).text, " ".join(argv)
    own = re.search(r"^.*(?:DKMS|Module [Ss]ign|MOK|akmods|Machine Owner).*$", lists["platform"], re.MULTILINE)
    if "machine" not in sources or "asymmetric" in lists["machine"]:
        return None
    if own is not None:
        return fact(own[0].strip(), sources["platform"])
    return fact("empty", sources["machine"]) if "empty" in lists["machine"] and _listed(seen) else None


def _listed(seen: Evidence) -> Fact | None:
    """Return the line of mokutil's list that holds an enrolled key made for modules, or `None`."""
    for argv in seen.host.host.recorded():
        if argv[0] == "mokutil" and {"-l", "--list-enrolled"} & set(argv):
            own = re.search(r"^.*(?:DKMS|[Mm]odule [Ss]ign|MOK|akmods|Machine Owner).*$", seen.host.run(argv).text, re.MULTILINE)
            if own:
                return fact(own[0].strip(), " ".join(argv))
    return None


@rule("mok-not-in-machine-keyring")
def not_trusted(seen: Evidence) -> Answer:
    """The module is refused although its key is enrolled, or the boot chain could not pass the keys on."""
    no, trust, ring = refused(seen), seen.first(MokTrustFailed), _keyring(seen)
    enrolled = seen.first(MokState, lambda event: event.enrolled)
    missing = seen.first(MokState, lambda event: not event.enrolled)
    if missing is not None and enrolled is None:
        return out(missing)
    state = enabled(seen)
    if no is None:
        # Nobody has tried to load a module yet, and none that is signed with this key would come in.
        told = (trust or ring) and (state is None or state.value == "enabled") and not seen.driver_answers
        return found(STRONG if trust and ring else LIKELY, trust, ring, state, _listed(seen)) if told else None
    if not (trust or ring or enrolled):
        return None
    return found(CERTAIN if trust or ring else STRONG + 0.05, no, enrolled, trust, ring)


@rule("mok-not-enrolled")
def not_enrolled(seen: Evidence) -> Answer:
    """A module is refused, or the driver fails under Secure Boot with a key that is not enrolled."""
    state, no = enabled(seen), refused(seen)
    missing = seen.first(MokState, lambda event: not event.enrolled)
    enrolled = seen.first(MokState, lambda event: event.enrolled)
    if state is not None and state.value == "disabled":
        return out(state)
    if enrolled is not None and missing is None:
        return out(enrolled)
    if seen.first(MokTrustFailed) or _keyring(seen):
        return out(seen.first(MokTrustFailed), _keyring(seen))
    if seen.driver_answers:
        return None
    came = _came(seen, no)
    if came is not None:
        return out(came)
    if no is not None:
        return found(CERTAIN if missing or state else LIKELY + 0.1, no, state, missing, _signer(seen))
    if missing is not None and state is not None:
        return found(STRONG, missing, state, _signer(seen))
    if state is not None and seen.driver_answers is False and _own_module(seen) and seen.modules.loads("nvidia") is not True:
        return found(POSSIBLE, state, _own_module(seen), _signer(seen))
    return None


def _came(seen: Evidence, no: Told | None) -> Told | None:
    """Return the first word of the driver's module after a complaint of its signature: it was let in, and only taints the kernel."""
    words = (*seen.all(Loading), *(event for event in seen.all(NvlinkCore) if event.registered))
    after = (word for word in words if no is not None and word.place.source == no.place.source and word.place.order > no.place.order)
    return next(after, None)


def _signer(seen: Evidence) -> Fact | None:
    """Return who signed the module on disk, or `None`."""
    for argv in (("modinfo", "-F", "signer", "nvidia"), ("modinfo", "nvidia")):
        text = seen.host.run(argv).stdout if seen.asked(*argv) else ""
        name = re.search(r"^signer:[ \t]*(\S.*)$", text, re.MULTILINE)
        if name or (argv[1] == "-F" and text.strip()):
            return fact(name[1] if name else text.strip(), " ".join(argv))
    return None


def _own_module(seen: Evidence) -> Told | None:
    """Return the sign that the module was built here, so that no distribution's key signs it, or `None`."""
    return next((line for line in seen.modules.dkms or () if line.module.startswith("nvidia") and line.state == "installed"), None)
