"""Habana's Gaudi cards: who holds them, releases that differ, RDMA devices and firmware."""

from __future__ import annotations

import re

from steps.doctor.events.vendors import AcquireFailed, HabanaDead, HabanaRdmaMissing, HabanaRelease, NoPorts, ServerType
from steps.doctor.evidence import Evidence
from steps.doctor.rules.base import CERTAIN, LIKELY, POSSIBLE, STRONG, Answer, found, out, rule
from steps.doctor.told import Fact, fact

_BUSY, _GENERIC = 20, 26
"""Synapse's status for a device that could not be acquired, and the one for any other reason."""


def _unacquired(seen: Evidence) -> AcquireFailed | None:
    """Return an acquire that failed since the card is taken."""
    return seen.first(AcquireFailed, lambda event: event.acquired or event.number == _BUSY)


@rule("hpu-in-use-by-other-process")
def in_use(seen: Evidence) -> Answer:
    """The card is taken, and nothing else is complained about."""
    failed = _unacquired(seen)
    other = seen.first(ServerType)
    if failed is None:
        generic = seen.first(AcquireFailed, lambda event: event.number in (_GENERIC, None))
        return found(POSSIBLE, generic, _holder(seen)) if generic is not None and other is None else None
    if other is not None:
        return out(other)
    return found(STRONG if failed.acquired else LIKELY, failed, _holder(seen))


def _holder(seen: Evidence) -> Fact | None:
    """Return a process that hl-smi lists on a card."""
    line = re.search(r"^\|? *\d+ +(\d{2,}) +\S+ +(\S+).*$", seen.host.run(("hl-smi",)).stdout, re.MULTILINE)
    return fact(line[2], "hl-smi", line[0].strip()) if line else None


@rule("hpu-software-driver-skew")
def skew(seen: Evidence) -> Answer:
    """Software and driver are of two releases."""
    said = seen.all(HabanaRelease)
    software = next((fact(one.release, one.place.source, one.place.text) for one in said if one.part == "software"), None)
    driver = next((fact(one.release, one.place.source, one.place.text) for one in said if one.part == "driver"), None)
    software = software or _packaged(seen, _SOFTWARE)
    driver = (driver or _asked(seen) or _packaged(seen, _DRIVER)) if software is not None else None
    if software is None or driver is None:
        return None
    if software.value == driver.value:
        return out(software, driver)
    return found(STRONG + 0.05, software, driver, software=software.value, driver=driver.value)


_SOFTWARE = re.compile(r"habana(?:labs)?-?(?:graph|torch|tools|_?media)\S*")
_DRIVER = re.compile(r"habanalabs-(?:dkms|driver|firmware)\S*")


def _packaged(seen: Evidence, names: re.Pattern[str]) -> Fact | None:
    """Return the release (major.minor) of an installed package with such a name."""
    for row in seen.packages.rows:
        release = re.match(r"(1\.\d+)\.", row.version or "")
        if row.installed and names.fullmatch(row.name) and release:
            return fact(release[1], row.place.source, row.place.text)
    return None


def _asked(seen: Evidence) -> Fact | None:
    """Return the driver's release where hl-smi was asked for nothing else, or modinfo tells it."""
    module = ("modinfo", "habanalabs")
    for argv in seen.host.forms(lambda argv: argv[0] == "hl-smi" or argv == module, ("hl-smi",), module):
        release = re.search(r"(?:^|[ ,:])(1\.\d+)\.\d+-[0-9a-f]{6,8}\b", seen.host.run(argv).stdout, re.MULTILINE)
        if release:
            return fact(release[1], " ".join(argv), release[0].strip())
    return None


@rule("hpu-generation-unsupported")
def generation(seen: Evidence) -> Answer:
    """The communication library does not know this type of machine."""
    said = seen.first(ServerType)
    if said is None:
        failed = _unacquired(seen)
        return out(failed) if failed is not None and failed.acquired else None
    return found(CERTAIN, said, _unacquired(seen))


@rule("hpu-rdma-module-missing")
def rdma(seen: Evidence) -> Answer:
    """The cards' InfiniBand devices are not there."""
    said = seen.first(HabanaRdmaMissing)
    if said is None:
        return None
    modules = seen.host.read("/proc/modules") or seen.host.run(("lsmod",)).stdout
    loaded = re.search(r"^habanalabs_ib\s.*$", modules, re.MULTILINE)
    main = re.search(r"^habanalabs\s.*$", modules, re.MULTILINE)
    without = fact("habanalabs", "lsmod", main[0]) if main and not loaded else None
    return found(CERTAIN if without else STRONG, said, without)


@rule("hpu-scaleout-needs-host-nic")
def no_ports(seen: Evidence) -> Answer:
    """No card has ports of its own: these are cards for a PCIe slot."""
    said = seen.first(NoPorts)
    if said is None:
        return None
    missing = seen.first(HabanaRdmaMissing)
    if missing is not None:
        return out(missing)
    model = _model(seen)
    if model is not None and not model.value.startswith("HL-3"):
        return found(LIKELY, said, model, model=model.value)
    return found(CERTAIN if model else LIKELY, said, model, model=model.value if model else "?")


def _model(seen: Evidence) -> Fact | None:
    """Return the model of the first card as hl-smi prints it."""
    for argv in seen.host.forms(lambda argv: argv[0] == "hl-smi", ("hl-smi", "-Q", "name", "-f", "csv,noheader")):
        name = re.search(r"\bHL-\d{3}\w*", seen.host.run(argv).stdout)
        if name:
            return fact(name[0], " ".join(argv))
    return None


@rule("hpu-firmware-not-started")
def firmware(seen: Evidence) -> Answer:
    """A card's own processor does not answer its driver."""
    dead = seen.first(HabanaDead)
    return found(STRONG + 0.05, dead, card=dead.card or "?") if dead is not None else None
