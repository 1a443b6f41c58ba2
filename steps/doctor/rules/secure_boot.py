"""Secure Boot refuses a module: its key was never enrolled, or the kernel does not trust an enrolled one."""

from __future__ import annotations

import re

from steps.doctor.events.kernel import InsertFailed, Loading, NvlinkCore
from steps.doctor.events.signatures import KeyRefused, MokState, MokTrustFailed
from steps.doctor.evidence import Evidence
from steps.doctor.facts.keys import questions
from steps.doctor.rules.base import CERTAIN, LIKELY, POSSIBLE, STRONG, Answer, found, out, rule
from steps.doctor.told import Fact, Told, fact

_SB = ("mokutil", "--sb-state")
_RINGS = (("keyctl", "list", "%:.platform"), ("keyctl", "list", "%:.machine"))
_ENROLLED = ("mokutil", "--list-enrolled")


def enabled(seen: Evidence) -> Fact | None:
    """Return what mokutil says of Secure Boot, or `None` when nobody asked."""
    said = seen.host.run(_SB).text.strip()
    word = re.search(r"SecureBoot (enabled|disabled)", said)
    return fact(word[1], " ".join(_SB), word[0]) if word else None


def _states(seen: Evidence) -> tuple[MokState, ...]:
    """Return what mokutil says of the keys that sign modules here: in what was recorded or handed over, or asked now."""
    return seen.heard(MokState, *questions(seen.host, seen.system))


_KEY = re.compile(
    r"Key was rejected|Required key|密钥|金鑰|键|鍵|关键字|Schlüssel|\b[Cc]lé\b|\b(?:[Cc]lave|[Cc]have|[Cc]hiave)\b|[Кк]люч|\b키"
)
"""Of all reasons why a module may not come in, the two that speak of a key do so in every language."""


def refused(seen: Evidence) -> Told | None:
    """Return the message that a module was refused for its signature, or `None`."""
    tried = seen.first(InsertFailed, lambda event: _KEY.search(event.reason or "") is not None)
    return tried or seen.first(KeyRefused) or _not_permitted(seen)


_DRIVER = re.compile(r"(?:nvidia|amdgpu)\b|nvidia[_-]")
_PERMITTED = re.compile(r"not permitted|不允许的操作|nicht erlaubt|non permise|no permitida|não permitida|не позволена|許可されていない")


def _not_permitted(seen: Evidence) -> Told | None:
    """Return that the driver's module may not come in while the kernel is locked; `None` where root's rights may be what is missing."""
    if seen.system.container or locked(seen) is None or _tried_without_root(seen):
        return None
    return seen.first(
        InsertFailed, lambda event: _DRIVER.match(event.module) is not None and _PERMITTED.search(event.reason or "") is not None
    )


def _tried_without_root(seen: Evidence) -> bool:
    """Return whether every command that was to load a module was typed at a person's own prompt; `False` where none is shown."""
    typed = [one.place.text for one in seen.commands("modprobe", "insmod")]
    return bool(typed) and all(re.search(r"[$%❯➜] *\S*(?:modprobe|insmod)\b", text) for text in typed)


def locked(seen: Evidence) -> Fact | None:
    """Return what says that the kernel takes signed modules only: its own word, its command line, or Secure Boot; else `None`."""
    path, line = "/sys/kernel/security/lockdown", "/proc/cmdline"
    mode = re.search(r"\[(integrity|confidentiality)\]", seen.host.read(path) or "")
    if mode is not None:
        return fact(mode[1], path, mode[0])
    word = re.search(r"\b(?:lockdown=(?:integrity|confidentiality)|module\.sig_enforce(?:=1)?(?!\S))", seen.host.read(line) or "")
    if word is not None:
        return fact(word[0], line, word[0])
    state = enabled(seen)
    return state if state is not None and state.value == "enabled" else None


def _keyring(seen: Evidence) -> Fact | None:
    """Return the line of the platform keyring that holds an owner's key which the machine keyring lacks, or `None`."""
    lists: dict[str, str] = {"platform": "", "machine": ""}
    sources: dict[str, str] = {}
    for argv in seen.host.forms(lambda argv: argv[0] == "keyctl", *_RINGS):
        ring = re.search(r"\.(platform|machine)\b", " ".join(argv))
        if ring and (text := seen.host.run(argv).text):
            lists[ring[1]], sources[ring[1]] = text, " ".join(argv)
    own = re.search(r"^.*(?:DKMS|Module [Ss]ign|MOK|akmods|Machine Owner).*$", lists["platform"], re.MULTILINE)
    if "machine" not in sources or "asymmetric" in lists["machine"]:
        return None
    if own is not None:
        return fact(own[0].strip(), sources["platform"])
    return fact("empty", sources["machine"]) if "empty" in lists["machine"] and _listed(seen) else None


def _listed(seen: Evidence) -> Fact | None:
    """Return the line of mokutil's list that holds an enrolled key made for modules, or `None`."""
    for argv in seen.host.forms(lambda argv: argv[0] == "mokutil" and bool({"-l", "--list-enrolled"} & set(argv)), _ENROLLED):
        own = re.search(r"^.*(?:DKMS|[Mm]odule [Ss]ign|MOK|akmods|Machine Owner).*$", seen.host.run(argv).text, re.MULTILINE)
        if own:
            return fact(own[0].strip(), " ".join(argv))
    return None


def _own_listed(seen: Evidence) -> Fact | None:
    """Return the line of mokutil's list with the very key that signed the module, or `None`."""
    signer = _signer(seen)
    for argv in seen.host.forms(lambda argv: argv[0] == "mokutil" and bool({"-l", "--list-enrolled"} & set(argv))):
        name = re.escape(signer.value) if signer is not None else None
        line = re.search(rf"^.*{name}.*$", seen.host.run(argv).text, re.MULTILINE) if name else None
        if line is not None:
            return fact(line[0].strip(), " ".join(argv))
    return None


@rule("mok-not-in-machine-keyring")
def not_trusted(seen: Evidence) -> Answer:
    """The module is refused although its key is enrolled, or the boot chain could not pass the keys on."""
    if not seen.rehearsal and seen.driver_answers:
        return None
    no, trust, ring = refused(seen), seen.first(MokTrustFailed), _keyring(seen)
    states = _states(seen)
    enrolled = next((event for event in states if event.enrolled), None)
    missing = next((event for event in states if not event.enrolled), None)
    if missing is not None and enrolled is None:
        return out(missing)
    state = enabled(seen)
    if no is None:
        # Nobody has tried to load a module yet, and none that is signed with this key would come in.
        told = (trust or ring) and (state is None or state.value == "enabled") and not seen.driver_answers
        return found(STRONG if trust and ring else LIKELY, trust, ring, state, _listed(seen)) if told else None
    own = _own_listed(seen)
    if not (trust or ring or enrolled or own):
        return None
    return found(CERTAIN if trust or ring else STRONG + 0.05, no, enrolled, own, trust, ring)


@rule("mok-not-enrolled")
def not_enrolled(seen: Evidence) -> Answer:
    """A module is refused, or the driver fails under Secure Boot with a key that is not enrolled."""
    if not seen.rehearsal and seen.driver_answers:
        return None
    state, no, states = enabled(seen), refused(seen), _states(seen)
    missing = next((event for event in states if not event.enrolled), None)
    enrolled = next((event for event in states if event.enrolled), None)
    if state is not None and state.value == "disabled":
        return out(state)
    if missing is None and (enrolled or _own_listed(seen)):
        return out(enrolled, _own_listed(seen))
    if seen.first(MokTrustFailed) or _keyring(seen):
        return out(seen.first(MokTrustFailed), _keyring(seen))
    if seen.driver_answers:
        return None
    came = _came(seen, no)
    if came is not None:
        return out(came)
    if no is not None:
        sure = CERTAIN if missing or state else LIKELY + 0.1
        other = _other_module(seen, no)
        return found(min(sure, LIKELY) if other else sure, no, state or locked(seen), missing, _signer(seen), other)
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
        text = seen.host.run(argv).stdout
        name = re.search(r"^signer:[ \t]*(\S.*)$", text, re.MULTILINE)
        if name or (argv[1] == "-F" and text.strip()):
            return fact(name[1] if name else text.strip(), " ".join(argv))
    return None


def _other_module(seen: Evidence, no: Told) -> Told | None:
    """Return another module that was built here and may be the refused one, where nothing says that it is the driver's; else `None`."""
    if re.search(r"nvidia|amdgpu", no.place.text) or _signer(seen) is not None:
        return None
    return next((line for line in seen.modules.dkms or () if not line.module.startswith(("nvidia", "amdgpu"))), None)


def _own_module(seen: Evidence) -> Told | None:
    """Return the sign that the module was built here, so that no distribution's key signs it, or `None`."""
    return next((line for line in seen.modules.dkms or () if line.module.startswith("nvidia") and line.state == "installed"), None)
