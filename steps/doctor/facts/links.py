"""The PCIe links of the cards, as sysfs, lspci or nvidia-smi tell them, also where only a fragment was copied."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from steps.detect import pci
from steps.detect.probes import Probes
from steps.doctor.facts.readings import Readings
from steps.doctor.numbers import number
from steps.doctor.told import Place, Told


class LinkSeen(Told):
    """One link: speeds in GT/s and widths in lanes, now and at most; `busy` is the load in percent, if told there."""

    address: str | None = None
    speed: float | None = None
    most_speed: float | None = None
    width: int | None = None
    most_width: int | None = None
    busy: float | None = None

    fewer: bool = False
    """Whether the source itself says that the width is below what the card can."""

    lanes_above: int | None = None
    """How many lanes the board gives it, where sysfs tells: a slot that is wired so, or shared by two, is no fault of the link."""

    @property
    def narrow(self) -> bool:
        """Return whether it has fewer lanes than both its ends can have."""
        return self.width is not None and self.width > 0 and (self.fewer or (self.most_width is not None and self.width < self.most_width))

    @property
    def slow(self) -> bool:
        """Return whether it is slower now than it can be."""
        return self.speed is not None and self.most_speed is not None and self.speed < self.most_speed


_BLOCK = re.compile(r"^(?P<head>\S*[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] [^\n]*)?(?P<body>(?:\n?[ \t]+[^\n]*|\n)+)", re.MULTILINE)
_CAPABLE = re.compile(r"LnkCap: *[^\n]*?Speed (?P<speed>[\d.]+) ?GT/s,? Width x(?P<width>\d+)")
_STATE = re.compile(r"LnkSta: *[^\n]*?Speed (?P<speed>[\d.]+) ?GT/s[^,\n]*, Width x(?P<width>\d+)[^\n]*")


def links_seen(host: Probes, told: tuple[Readings, ...]) -> tuple[LinkSeen, ...]:
    """Return the links of NVIDIA's and AMD's cards from every source."""
    sysfs = tuple(_of_sysfs(host))
    ports = {_short(link.address): link.lanes_above for link in sysfs if link.lanes_above}
    others = (*_of_lspci(host), *_of_query(host), *_of_readings(told))
    return (*sysfs, *(msgspec.structs.replace(link, lanes_above=ports.get(_short(link.address))) for link in others))


def _short(address: str | None) -> str:
    """Return an address without its domain's leading zeros: programs write them with four and with eight."""
    return (address or "").lower()[-12:]


def _of_sysfs(host: Probes) -> Iterator[LinkSeen]:
    named = pci.devices(host)
    # Where only files of the link were copied, they are those of the card that their owner asks about.
    bare = [
        pci.Device(address=name, vendor="", device="", kind="")
        for name in host.listdir(pci.DEVICES) or ()
        if host.read(f"{pci.DEVICES}/{name}/vendor") is None and host.read(f"{pci.DEVICES}/{name}/current_link_width")
    ]
    for device in (*named, *bare):
        if device not in bare and (device.vendor not in ("10de", "1002") or device.kind[:2] not in ("03", "12")):
            continue
        at = f"{pci.DEVICES}/{device.address}"
        names = ("current_link_speed", "max_link_speed", "current_link_width", "max_link_width")
        told = [host.line(f"{at}/{name}") for name in names]
        speed, most, width, widest = (number(text) for text in told)
        if width or speed:
            text = ", ".join(f"{name} {value}" for name, value in zip(names, told, strict=True) if value)
            yield LinkSeen(
                place=Place(source=at, text=text), address=device.address, speed=speed, most_speed=most,
                width=_lanes(width), most_width=_lanes(widest), lanes_above=_above(host, device),
            )  # fmt: skip


def _above(host: Probes, device: pci.Device) -> int | None:
    """Return the lanes that the board gives a card: those of its port, less what ports of the same device lead elsewhere."""
    above = device.branch[-2] if len(device.branch) > 1 else None
    lanes = _lanes(number(host.line(f"{pci.DEVICES}/{above}/max_link_width"))) if above else None
    if above is None or lanes is None:
        return None
    sisters = [name for name in host.listdir(pci.DEVICES) or () if name != above and name[:-1] == above[:-1]]
    taken = sum(_lanes(number(host.line(f"{pci.DEVICES}/{name}/current_link_width"))) or 0 for name in sisters)
    return max(lanes - taken, 1) if len(device.branch) == 2 else lanes


def _of_readings(told: tuple[Readings, ...]) -> Iterator[LinkSeen]:
    """Yield the links in `nvidia-smi -q`, with the load that stands beside them."""
    for gpu in told:
        width, gen = gpu.at("Link Width/Current"), gpu.number("PCIe Generation/Current")
        if width is None and gen is None:
            continue
        shown = [f"{name} {value.value}" for name in _READ if (value := gpu.at(name))]
        yield LinkSeen(
            place=Place(source=gpu.source, text="; ".join(shown)), address=gpu.address, speed=_SPEEDS.get(int(gen or 0)),
            most_speed=_SPEEDS.get(int(gpu.number("PCIe Generation/Max") or 0)), width=_lanes(gpu.number("Link Width/Current")),
            most_width=_lanes(gpu.number("Link Width/Max")), busy=gpu.number("Utilization/Gpu") or gpu.number("Utilization/GPU"),
        )  # fmt: skip


def _lanes(told: float | None) -> int | None:
    return int(told) if told and 0 < told <= 32 else None


def _of_lspci(host: Probes) -> Iterator[LinkSeen]:
    for argv in host.forms(lambda argv: argv[0] == "lspci"):
        text = host.run(argv).stdout
        for block in re.split(r"\n(?=\S*[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] )", text):
            able, now = _CAPABLE.search(block), _STATE.search(block)
            head = re.match(r"(?P<address>\S*[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (?P<rest>[^\n]*)", block)
            # Without a heading the fragment is what its owner thought worth asking about.
            if now is None or (head and not re.search(r"(?:VGA|3D|Display|Processing)[^\n]*(?:NVIDIA|AMD|ATI)", head["rest"])):
                continue
            yield LinkSeen(
                place=Place(source=" ".join(argv), text="; ".join(part[0] for part in (able, now) if part)),
                address=head["address"] if head else None, speed=number(now["speed"]), most_speed=number(able["speed"]) if able else None,
                width=_lanes(number(now["width"])), most_width=_lanes(number(able["width"])) if able else None,
                fewer="(downgraded)" in now[0].partition("Width x")[2],
            )  # fmt: skip


_FIELDS = {
    "pcie.link.gen.current": "gen",
    "pcie.link.gen.gpucurrent": "gen",
    "pcie.link.gen.max": "most_gen",
    "pcie.link.width.current": "width",
    "pcie.link.width.max": "most_width",
    "utilization.gpu": "busy",
    "pci.bus_id": "address",
}
_READ = ("PCIe Generation/Current", "PCIe Generation/Max", "Link Width/Current", "Link Width/Max")
_SPEEDS = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0}


def _of_query(host: Probes) -> Iterator[LinkSeen]:
    for argv in host.forms(lambda argv: argv[0].rsplit("/", 1)[-1] == "nvidia-smi"):
        query = next((part.partition("=")[2] for part in argv if part.startswith("--query-gpu=")), "")
        names = [_FIELDS.get(name.strip(), "") for name in query.split(",")]
        if not {"gen", "width"} & set(names):
            continue
        for line in host.run(argv).stdout.splitlines():
            cells = dict(zip(names, (cell.strip() for cell in line.split(",")), strict=False))
            width, gen = number(cells.get("width")), number(cells.get("gen"))
            if width is None and gen is None:
                continue
            yield LinkSeen(
                place=Place(source=" ".join(argv), text=line.strip()), address=cells.get("address"),
                speed=_SPEEDS.get(int(gen or 0)), most_speed=_SPEEDS.get(int(number(cells.get("most_gen")) or 0)),
                width=_lanes(width), most_width=_lanes(number(cells.get("most_width"))), busy=number(cells.get("busy")),
            )  # fmt: skip
