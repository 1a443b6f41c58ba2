"""Another driver has the card: one of the kernel's own, or the one that hands cards to virtual machines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from steps.catalog import linux
from steps.doctor.events.bus import OwnedBy, ProbeNotCalled
from steps.doctor.events.runs import InstallerDone, NouveauRunning
from steps.doctor.evidence import Evidence
from steps.doctor.rules.base import CERTAIN, LIKELY, POSSIBLE, STRONG, Answer, found, out, rule
from steps.doctor.told import Fact, Told, fact

_CARD = re.compile(
    r"^(?P<card>\S*[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] (?:VGA|3D|Display)[^\n]*NVIDIA[^\n]*)(?P<rest>(?:\n[ \t]+[^\n]*)*)", re.MULTILINE
)


def owners(seen: Evidence) -> tuple[tuple[str, Told], ...]:
    """Return which drivers have NVIDIA's cards now, each with the fact that says so."""
    found_: list[tuple[str, Told]] = [(card.driver.replace("-", "_"), card) for card in seen.cards.cards if card.driver]
    for argv in seen.host.forms(lambda argv: argv[0] == "lspci"):
        if found_:
            break
        for block in _CARD.finditer(seen.host.run(argv).stdout):
            owner = re.search(r"Kernel driver in use: (\S+)", block["rest"])
            if owner:
                found_.append((owner[1].replace("-", "_"), fact(owner[1], " ".join(argv), f"{block['card'].strip()[:120]}: {owner[0]}")))
    return tuple(found_)


def _wanted(seen: Evidence) -> Told | None:
    """Return the sign that NVIDIA's driver is meant to have the card, or `None`: without one, nouveau is what a fresh system runs."""
    signs: tuple[Told, ...] = (
        *seen.packages.driver("module", "library", "tool"),
        *(seen.modules.files or ()),
        *(line for line in seen.modules.dkms or () if line.module.startswith("nvidia")),
        *seen.versions.on_disk,
        *seen.all(ProbeNotCalled),
        *(event for event in seen.all(OwnedBy) if event.refused),
        *seen.modules.leftovers,
        *offered(seen),
    )
    return next(iter(signs), None)


def offered(seen: Evidence) -> Iterator[Fact]:
    """Yield the bus's words that NVIDIA's module is installed and would take the card as well."""
    for argv in seen.host.forms(lambda argv: argv[0] == "lspci"):
        for block in _CARD.finditer(seen.host.run(argv).stdout) if argv[0] == "lspci" else ():
            modules = re.search(r"Kernel modules: [^\n]*\bnvidia(?:_drm|_current\w*)?(?=[,\s]|$)[^\n]*", block["rest"])
            if modules:
                yield fact("nvidia", " ".join(argv), modules[0].strip())


def _kept_out(seen: Evidence) -> Told | None:
    """Return what was meant to keep the kernel's driver out, or `None`."""
    line = next(
        (one for one in seen.modules.settings if one.verb in ("blacklist", "install", "options") and one.module in linux.in_tree_names()),
        None,
    )
    return line or command_line(seen)


def command_line(seen: Evidence) -> Fact | None:
    """Return the words of the kernel's command line that name a driver to keep out, or `None`."""
    said = re.search(r"(?:Kernel command|Command) line: ([^\n]*)", seen.host.run(("dmesg",)).text)
    texts = (("/proc/cmdline", seen.host.read("/proc/cmdline") or ""), ("dmesg", said[1] if said else ""))
    for source, text in texts:
        word = re.search(r"\S*(?:blacklist|modprobe\.blacklist|driver\.blacklist|nouveau\.\w+|nova_core\.\w+)\S*", text)
        if word and re.search(r"nouveau|nova", word[0]):
            return fact(word[0], source, word[0])
    return None


@rule("in-tree-driver-owns-gpu")
def in_tree(seen: Evidence) -> Answer:
    """The bus or the log says that nouveau or nova_core has the card, and NVIDIA's driver is wanted."""
    bus = next(((name, told) for name, told in owners(seen) if name in linux.in_tree_names()), None)
    log = seen.first(OwnedBy, lambda event: event.driver in linux.in_tree_names())
    uncalled = seen.first(ProbeNotCalled)
    others = [told for name, told in owners(seen) if name not in linux.in_tree_names()]
    lent = seen.first(OwnedBy, lambda event: event.driver.startswith("vfio"))
    if (others or lent) and bus is None:
        return out(*others, lent)
    if bus is None and log is None and uncalled is None:
        return _alone(seen)
    if seen.driver_answers or (bus is None and seen.modules.loads("nvidia")):
        return None
    owner = bus[0] if bus else log.driver if log else next((name for name in linux.in_tree_names() if seen.modules.loads(name)), "nouveau")
    owner = next((row.module for row in linux.in_tree() if owner in row.bound), owner)
    meant = _wanted(seen)
    blocked = _kept_out(seen)
    if uncalled is None and meant is None and blocked is None and seen.driver_answers is None:
        # A system as it was installed: nothing was meant to be otherwise.
        return None
    if uncalled is None and meant is None and blocked is None:
        return found(POSSIBLE, bus[1] if bus else log, driver=owner) if _smi_here(seen) else None
    sure = CERTAIN if bus or uncalled else STRONG
    return found(
        sure, bus[1] if bus else None, uncalled, log, blocked, meant, driver=owner, variant="late" if _initramfs_only(seen) else ""
    )


def _alone(seen: Evidence) -> Answer:
    """Decide where only the list of modules is known: nouveau is in use, NVIDIA's is not there, and its tools wait for it."""
    if seen.driver_answers is not False or seen.modules.loads("nvidia") or not seen.modules.loads("nouveau"):
        return None
    return found(POSSIBLE - 0.1, fact("nouveau", "lsmod"), _kept_out(seen), _wanted(seen), driver="nouveau")


def _smi_here(seen: Evidence) -> bool:
    """Return whether nvidia-smi itself is installed, whatever it says."""
    return seen.smi.installed is not False


def _initramfs_only(seen: Evidence) -> bool:
    """Return whether the only thing that keeps nouveau out is one that nobody reads after the initramfs."""
    word = command_line(seen)
    return word is not None and "rd.driver" in word.value and "modprobe.blacklist" not in word.value


@rule("nouveau-running-until-reboot")
def until_reboot(seen: Evidence) -> Answer:
    """The installer itself says that nouveau stays until the next boot."""
    said = seen.first(NouveauRunning)
    if said is None or seen.driver_answers or seen.modules.loads("nouveau") is False:
        return None
    if any(card.driver_known and card.driver != "nouveau" for card in seen.cards.cards):
        return None
    done = seen.first(InstallerDone)
    return found(CERTAIN if done else LIKELY + 0.1, said, done, variant="without" if done and "not install any" in done.place.text else "")


def _reserved(seen: Evidence) -> Told | None:
    """Return what gives NVIDIA's cards to vfio-pci by their ids, or `None`."""
    line = next(
        (one for one in seen.modules.settings if one.verb == "options" and one.module.startswith("vfio") and "10de:" in one.rest), None
    )
    said = re.search(r"(?:Kernel command|Command) line: ([^\n]*)", seen.host.run(("dmesg",)).text)
    for source, text in (("/proc/cmdline", seen.host.read("/proc/cmdline") or ""), ("dmesg", said[1] if said else "")):
        word = re.search(r"\bvfio-pci\.ids=\S*10de:\S*", text)
        if line is None and word is not None:
            return fact(word[0], source)
    return line


@rule("vfio-owns-gpu")
def vfio(seen: Evidence) -> Answer:
    """vfio-pci has the card."""
    bus = next((told for name, told in owners(seen) if name == "vfio_pci"), None)
    log = seen.first(OwnedBy, lambda event: event.driver in ("vfio_pci", "vfio"))
    others = [told for name, told in owners(seen) if name != "vfio_pci"]
    if bus is None and log is None:
        lent = _reserved(seen) if seen.driver_answers is False and not others else None
        return found(LIKELY, lent) if lent is not None else out(*others) if others else None
    if bus is None and others:
        return out(*others)
    # Where other cards serve the host, one that is lent out is meant to be.
    if seen.driver_answers and seen.smi.gpus:
        return None
    ids = next((one for one in seen.modules.settings if one.verb == "options" and one.module.startswith("vfio")), None)
    return found(CERTAIN, bus, log, ids)
