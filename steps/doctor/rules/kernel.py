"""The kernel module: missing for this kernel, of the wrong flavour or branch, kept out, or without a usable card."""

from __future__ import annotations

import re
from itertools import pairwise

from steps.doctor import numbers
from steps.doctor.events.bus import Unreachable
from steps.doctor.events.dkms import BuildFailed
from steps.doctor.events.faults import FellOff
from steps.doctor.events.kernel import (
    FatalInit,
    FirmwareMissing,
    HelperFailed,
    InitFailed,
    InitramfsDiffers,
    InsertFailed,
    LegacyCard,
    ModuleNotFound,
    NeedsOpen,
    NoGpuFound,
    NoGsp,
    NvlinkCore,
)
from steps.doctor.events.loads import Denied, NoImage, OtherKernels
from steps.doctor.events.ownership import ImageHolds, Rebooted
from steps.doctor.events.typed import Command
from steps.doctor.evidence import Evidence
from steps.doctor.facts import profiles
from steps.doctor.facts.cards import Card
from steps.doctor.facts.versions import fit
from steps.doctor.rules.base import CERTAIN, LIKELY, POSSIBLE, STRONG, Answer, found, out, rule
from steps.doctor.rules.driver_mismatch import ahead
from steps.doctor.together import all_cards, ended, newer_only, only, served
from steps.doctor.told import Fact, Told, fact

_OPEN_ONLY = "0x22:0x56"
"""The step at which a closed module gives a card up that only the open one starts."""
_FORMAT = re.compile(r"Exec format error|Invalid module format")


def installed_branch(seen: Evidence) -> Fact | None:
    """Return the version of the driver that would drive the cards now: the loaded one, else that on disk, else that of its packages."""
    told = (*seen.versions.loaded, *seen.versions.on_disk, *seen.versions.user)
    return next(iter(told), None)


@rule("initramfs-has-old-module")
def old_initramfs(seen: Evidence) -> Answer:
    """A check of the image says that its module is not the one on disk, or the loaded one stays old though the machine was rebooted."""
    differs = seen.first(InitramfsDiffers)
    if differs is not None:
        return found(STRONG, differs)
    loaded, disk = next(iter(seen.versions.loaded), None), next(iter(seen.versions.on_disk), None)
    if loaded is None or disk is None or fit(loaded, disk):
        return out(disk, loaded) if loaded and disk else None
    holds, again = seen.first(ImageHolds), seen.first(Rebooted)
    if holds is None and again is None:
        return None
    return found(STRONG if holds else LIKELY + 0.1, loaded, disk, holds, again)


@rule("no-module-for-running-kernel")
def no_module(seen: Evidence) -> Answer:
    """The driver's module lies on disk for other kernels only."""
    running, files = seen.system.kernel, seen.modules.files
    if seen.modules.loads("nvidia") or seen.driver_answers:
        return None
    other = seen.first(OtherKernels)
    if other is not None:
        named = other.running or (running.value if running else "?")
        return found(STRONG, other, _not_executable(seen), running, running=named, built=other.built or "?")
    if running is None:
        # modprobe looks below the running kernel's folder: it names the kernel, and not whether another has the module.
        looked = seen.first(ModuleNotFound, lambda event: event.module.startswith("nvidia") and event.kernel is not None)
        return found(POSSIBLE, looked, running=looked.kernel or "?", built="-") if looked else _foreign_format(seen)
    missing = seen.first(ModuleNotFound, lambda event: event.module == "nvidia" and event.kernel in (None, running.value))
    elsewhere = [file for file in files or () if file.name == "nvidia" and file.kernel != running.value]
    if running.value in seen.modules.kernels():
        return out(*[file for file in files or () if file.kernel == running.value][:1])
    if not elsewhere and files is None:
        built = [line for line in seen.modules.dkms or () if line.module.startswith("nvidia") and line.state == "installed" and line.kernel]
        if built and seen.driver_answers is False and all(line.kernel != running.value for line in built):
            kernels = ", ".join(dict.fromkeys(line.kernel or "" for line in built))
            return found(LIKELY, running, *built[:2], missing, running=running.value, built=kernels)
    if not elsewhere and missing is None:
        return _foreign_format(seen)
    if not elsewhere:
        return found(POSSIBLE, missing, running, running=running.value, built="-") if missing and seen.packages.driver() else None
    mine = [line for line in seen.modules.dkms or () if line.module.startswith("nvidia")]
    # With an entry of DKMS somebody tried to build it: then the reason is another one, unless none is known.
    strength = LIKELY if mine else STRONG + (0.1 if missing or seen.driver_answers is False else 0.0)
    kernels = ", ".join(dict.fromkeys(file.kernel for file in elsewhere))
    return found(strength, running, *elsewhere[:2], missing, *mine[:1], running=running.value, built=kernels)


def _not_executable(seen: Evidence) -> InsertFailed | None:
    """Return that the kernel did not take the file for one of its modules, or `None`."""
    return seen.first(InsertFailed, lambda event: event.module.startswith("nvidia") and _FORMAT.search(event.reason or "") is not None)


def _foreign_format(seen: Evidence) -> Answer:
    """Decide where nothing but the refusal is told: a module of another kernel is refused so, and a damaged one."""
    refused = _not_executable(seen)
    running = seen.system.kernel
    return found(POSSIBLE, refused, running=running.value if running else "?", built="?") if refused else None


@rule("gpu-needs-legacy-driver")
def legacy(seen: Evidence) -> Answer:
    """The driver says that an older branch drives the card, or the tables do where it found no GPU; never beside a card that it drives."""
    said, driver = _oldest(seen.all(LegacyCard)), installed_branch(seen)
    version = said.driver if said and said.driver else driver.value if driver else None
    other = served(seen, version) if version else None
    if said is not None:
        told = said.driver or "?"
        return out(said, other) if other else found(CERTAIN, said, card=said.card or "?", branch=said.branch, driver=told)
    if driver is None or seen.driver_answers or other is not None:
        return None
    left = [card for card in all_cards(seen) if ended(card, driver.value)]
    if not left or len(left) < len(all_cards(seen)):
        return None
    refused = seen.first(NoGpuFound) or seen.first(NoGsp)
    if refused is None and seen.driver_answers is None:
        return None
    last = min((card.row.last_driver_branch or "?" for card in left if card.row), key=numbers.parts)
    return found(STRONG if refused else LIKELY, left[0], driver, refused, card=left[0].name or "?", branch=last, driver=driver.value)


def _oldest(said: tuple[LegacyCard, ...]) -> LegacyCard | None:
    """Return the word on the card with the oldest branch, which may drive the others too; `None` without one."""
    return min(said, key=lambda event: numbers.parts(event.branch), default=None)


def left_out(seen: Evidence) -> tuple[LegacyCard, Card, str] | None:
    """Return a card that the driver ignores, one that it drives, and whether one branch could drive both: `older-card` or `two-drivers`."""
    said = _oldest(seen.all(LegacyCard))
    other = served(seen, said.driver) if said and said.driver else None
    if said is None or other is None:
        return None
    newer = newer_only(seen, said.branch)
    return (said, newer, "two-drivers") if newer else (said, other, "older-card")


@rule("gpu-needs-open-module")
def needs_open(seen: Evidence) -> Answer:
    """The closed module says so, or gives the card up at the step that is known for it."""
    said = seen.first(NeedsOpen)
    failed = seen.first(InitFailed, lambda event: event.code == _OPEN_ONLY)
    card = next((card for card in seen.cards.cards if card.row and card.row.open_modules == "required"), None)
    name = card.name if card and card.name else (said.pci_id if said else None) or (failed.address if failed else None) or "?"
    if seen.versions.flavor == "open":
        return None
    # The same step fails for any card that does not answer on the bus.
    gone = seen.first(Unreachable) or seen.first(FellOff)
    if said is None and gone is not None:
        return out(gone)
    if said is None and card is None and any(one.row for one in seen.cards.cards):
        return None
    if said or failed:
        return found(CERTAIN, said, failed, card, card=name)
    if card and seen.versions.flavor == "proprietary" and not seen.driver_answers:
        return found(STRONG, card, *_module(seen), card=name)
    return None


@rule("gpu-unsupported-by-open-module")
def lacks_gsp(seen: Evidence) -> Answer:
    """The open module says that the card lacks its processor."""
    said = seen.first(NoGsp)
    card, driver = only(seen, "no"), installed_branch(seen)
    if card and driver and ended(card, driver.value):
        # No driver of this branch drives it, of whatever kind.
        return None
    if said is not None:
        return found(CERTAIN, said, card, card=(card.name if card else None) or said.pci_id or "?")
    if card and seen.versions.flavor == "open" and not seen.driver_answers and len(seen.cards.cards) == 1:
        return found(STRONG, card, *_module(seen), card=card.name or "?")
    return None


def _module(seen: Evidence) -> tuple[Fact, ...]:
    """Return the module whose kind is known: the one that runs, else the one on disk."""
    return (seen.versions.loaded or seen.versions.on_disk)[:1]


@rule("driver-blocked-by-prime-profile")
def prime(seen: Evidence) -> Answer:
    """An alias names nothing to load in place of nvidia, or a profile's file keeps it from loading by itself."""
    refused = seen.first(InsertFailed, lambda event: event.module == "off")
    alias, profile = profiles.away(seen.modules.settings), _profile(seen)
    if refused is None and (seen.modules.loads("nvidia") or seen.driver_answers):
        return None
    if refused or alias:
        return found(CERTAIN if refused else STRONG, refused, alias, profile)
    silent = seen.driver_answers is False
    entry = profiles.listed(seen.modules.settings)
    denied = seen.first(Denied, lambda event: event.module == "nvidia") if silent else None
    if entry or denied:
        return found(STRONG if entry and silent else LIKELY, entry, denied, profile, variant="listed")
    # A module that was never built cannot be kept out.
    typed = profiles.chosen(seen.all(Command)) if silent and not seen.has(BuildFailed) else None
    if typed is not None:
        return found(LIKELY - 0.1, typed, profile, variant="chosen")
    return found(POSSIBLE, profile) if silent and profile is not None and profile.value == "intel" else None


def _profile(seen: Evidence) -> Fact | None:
    """Return what prime-select says, or `None`."""
    said = seen.host.run(("prime-select", "query")).stdout.strip()
    return fact(said, "prime-select query") if said else None


@rule("module-finds-no-usable-gpu")
def no_usable_gpu(seen: Evidence) -> Answer:
    """The module came and went at once; no line says why."""
    signs = seen.all(NvlinkCore)
    went = next((then for now, then in pairwise(signs) if now.registered and not then.registered), None)
    none_found = seen.first(NoGpuFound)
    if went is None and none_found is None:
        return None
    strength = LIKELY if went or seen.driver_answers is False else POSSIBLE
    return found(strength, *signs[:2], none_found, seen.first(HelperFailed))


@rule("gpu-firmware-file-missing")
def no_firmware(seen: Evidence) -> Answer:
    """The driver asked for a firmware file that is not there, and needs it."""
    for missing in seen.all(FirmwareMissing):
        needed: Told | None = None
        if missing.driver == "amdgpu":
            needed = seen.first(FatalInit)
            if needed is None or missing.file.endswith("_cap.bin"):
                continue
        elif missing.driver != "nvidia" or seen.driver_answers:
            continue
        # The files went with the packages of the module that still runs: what is missing is its own version's.
        newer = ahead(seen)
        left = newer is not None and numbers.inside(missing.file) == seen.versions.loaded[0].value
        return found(POSSIBLE if left else CERTAIN, missing, needed, newer if left else None, file=missing.file)
    none = seen.first(NoImage)
    return found(LIKELY, none, file="gsp_*.bin") if none is not None and not seen.driver_answers else None


@rule("gdrdrv-linked-to-stub")
def stub(seen: Evidence) -> Answer:
    """Gdrdrv depends on a module that stands in for nvidia."""
    argv = ("modinfo", "gdrdrv")
    text = seen.host.run(argv).stdout
    depends = re.search(r"^depends:[ \t]*(\S*)[ \t]*$", text, re.MULTILINE)
    names = [name for name in (depends[1] if depends else "").split(",") if name]
    if depends is None or not names or "nvidia" in names:
        return None
    return found(CERTAIN, fact(depends[1], " ".join(argv), " ".join(depends[0].split())), needs=depends[1])
