"""The PCI devices of a machine, from sysfs or, where that was not seen, from lspci."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from steps.detect.probes import Probes
from steps.model.base import Record
from steps.model.hardware import PcieLink, Sriov

DEVICES = "/sys/bus/pci/devices"
ADDRESS = re.compile(r"^[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")
_GENERATIONS = {"2.5": 1, "5": 2, "5.0": 2, "8": 3, "8.0": 3, "16": 4, "16.0": 4, "32": 5, "32.0": 5, "64": 6, "64.0": 6}
_MOST_WIDTH = 32


class Device(Record):
    """One PCI function; `branch` are the addresses from the root port down to it."""

    address: str
    vendor: str
    device: str
    kind: str
    """The class, six hexadecimal digits; "" when not known."""
    subsystem: str | None = None
    revision: str | None = None
    """Two hexadecimal digits."""
    driver: str | None = None
    driver_known: bool = False
    numa_node: int | None = None
    link: PcieLink = PcieLink()
    bars: tuple[int, ...] = ()
    sriov: Sriov | None = None
    branch: tuple[str, ...] = ()
    name: str | None = None
    """What lspci calls it."""

    @property
    def pci_id(self) -> str:
        """Return vendor and device as `10de:2684`."""
        return f"{self.vendor}:{self.device}"


def devices(host: Probes) -> tuple[Device, ...]:
    """Return every PCI function, in the order of addresses; empty when there are none or nothing tells."""
    found = [device for name in host.listdir(DEVICES) or () if (device := _from_sysfs(host, name)) is not None]
    if not found:
        found = list(from_lspci(host.first(*_spellings(host)).stdout).values())
    return tuple(sorted(found, key=lambda device: device.address))


LSPCI = (("lspci", "-D", "-nn", "-vv"), ("lspci", "-nn", "-vv"), ("lspci", "-nnk"), ("lspci", "-nn"), ("lspci", "-vvv"), ("lspci",))


def _spellings(host: Probes) -> tuple[tuple[str, ...], ...]:
    """Return the forms of lspci that list devices, those that a capture holds behind the usual ones."""
    recorded = (argv for argv in host.host.recorded() if argv[0] == "lspci" and not any(part.startswith(("-t", "-nnt")) for part in argv))
    return tuple(dict.fromkeys((*LSPCI, *recorded)))


def seen(host: Probes) -> bool:
    """Return whether the bus was seen at all: without that, no card found means nothing."""
    return in_sysfs(host) or any(host.run(argv).stdout for argv in _spellings(host))


def in_sysfs(host: Probes) -> bool:
    """Return whether the kernel itself showed the bus, or that it has none: what lspci printed may be cut."""
    return host.listdir(DEVICES) is not None or host.exists(DEVICES) is False


def _from_sysfs(host: Probes, name: str) -> Device | None:
    at = f"{DEVICES}/{name}"
    vendor, device = _identifier(host, f"{at}/vendor"), _identifier(host, f"{at}/device")
    if not ADDRESS.match(name) or vendor is None or device is None:
        return None
    kind = host.number(f"{at}/class")
    driver = host.readlink(f"{at}/driver")
    real = host.readlink(at) or ""
    node = host.number(f"{at}/numa_node")
    return Device(
        address=name,
        vendor=vendor,
        device=device,
        kind="" if kind is None else f"{kind:06x}",
        subsystem=_pair(_identifier(host, f"{at}/subsystem_vendor"), _identifier(host, f"{at}/subsystem_device")),
        driver=PurePosixPath(driver).name if driver else None,
        driver_known=True,
        numa_node=node if node is not None and node >= 0 else None,
        branch=tuple(part for part in real.split("/") if ADDRESS.match(part)),
    )


def detailed(host: Probes, device: Device) -> Device:
    """Return a device with its link, memory windows and virtual functions, which few devices are asked for."""
    at = f"{DEVICES}/{device.address}"
    if not host.exists(at):
        return device
    total = host.number(f"{at}/sriov_totalvfs")
    link = PcieLink(
        generation=generation(host.line(f"{at}/current_link_speed")),
        max_generation=generation(host.line(f"{at}/max_link_speed")),
        width=_width(host.number(f"{at}/current_link_width")),
        max_width=_width(host.number(f"{at}/max_link_width")),
    )
    return Device(
        **{
            **{field: getattr(device, field) for field in device.__struct_fields__},
            "link": link,
            "bars": _bars(host.read(f"{at}/resource") or ""),
            "sriov": None if total is None else Sriov(total=total, enabled=host.number(f"{at}/sriov_numvfs")),
            "revision": _revision(host.line(f"{at}/revision")),
        }
    )


def _revision(text: str | None) -> str | None:
    """Return a revision without its prefix, or `None`."""
    found = re.fullmatch(r"(?:0x)?([0-9a-f]{2})", text or "")
    return found[1] if found else None


def _identifier(host: Probes, path: str) -> str | None:
    number = host.number(path)
    return None if number is None or not 0 <= number <= 0xFFFF else f"{number:04x}"


def _pair(vendor: str | None, device: str | None) -> str | None:
    return None if vendor is None or device is None else f"{vendor}:{device}"


def generation(speed: str | None) -> int | None:
    """Return the PCIe generation of `8.0 GT/s PCIe` or `16GT/s`, or `None`."""
    found = re.match(r"([\d.]+)\s*GT/s", speed or "")
    return _GENERATIONS.get(found[1]) if found else None


def _width(lanes: int | None) -> int | None:
    """Return a link width; the kernel says 0 or 255 when it does not know."""
    return lanes if lanes is not None and 0 < lanes <= _MOST_WIDTH else None


def _bars(resource: str) -> tuple[int, ...]:
    """Return the sizes of the six memory windows; 0 for one that is not there."""
    sizes: list[int] = []
    for line in resource.splitlines()[:6]:
        cells = line.split()
        try:
            start, end = int(cells[0], 16), int(cells[1], 16)
        except (IndexError, ValueError):
            return ()
        sizes.append(end - start + 1 if end > start else 0)
    return tuple(sizes)


# -- lspci ------------------------------------------------------------------------------------------------------------

_HEAD = re.compile(
    r"^(?P<address>(?:[0-9a-f]{4,}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (?P<kind>[^\[:]+?)(?: \[(?P<class>[0-9a-f]{4})\])?: (?P<name>.*?)"
    r"(?: \[(?P<vendor>[0-9a-f]{4}):(?P<device>[0-9a-f]{4})\])?(?: \(rev (?P<revision>[0-9a-f]+)\))?(?: \(prog-if .*\))?$"
)
_CLASSES = {
    "VGA compatible controller": "0300",
    "3D controller": "0302",
    "Display controller": "0380",
    "Processing accelerators": "1200",
    "Bridge": "0680",
}
_VENDORS = {
    "NVIDIA Corporation": "10de",
    "Advanced Micro Devices, Inc. [AMD/ATI]": "1002",
    "Intel Corporation": "8086",
    "Habana Labs Ltd.": "1da3",
}


def from_lspci(text: str) -> dict[str, Device]:
    """Return the devices that lspci printed, by address; without `-nn` only vendors of accelerators are told apart."""
    found: dict[str, Device] = {}
    for block in re.split(r"\n(?=\S)", text):
        head, _, body = block.strip("\n").partition("\n")
        match = _HEAD.match(head.rstrip())
        if match is None:
            continue
        address = match["address"] if match["address"].count(":") == 2 else f"0000:{match['address']}"
        vendor = match["vendor"] or next((code for name, code in _VENDORS.items() if match["name"].startswith(name)), "")
        # Where lspci knows no name it prints the number in its place.
        nameless = re.search(r" Device ([0-9a-f]{4})$", match["name"])
        driver = re.search(r"Kernel driver in use: (\S+)", body)
        node = re.search(r"NUMA node: (\d+)", body)
        subsystem = re.search(r"Subsystem: .*\[([0-9a-f]{4}:[0-9a-f]{4})\]", body)
        found[address] = Device(
            address=address,
            vendor=vendor,
            device=match["device"] or (nameless[1] if nameless else ""),
            kind=(match["class"] or _CLASSES.get(match["kind"], "")) + ("00" if match["class"] or match["kind"] in _CLASSES else ""),
            subsystem=subsystem[1] if subsystem else None,
            # A device that sleeps reads ff here; sysfs remembers what it once was.
            revision=_revision(match["revision"]) if match["revision"] != "ff" else None,
            driver=driver[1] if driver else None,
            driver_known="Kernel modules:" in body or driver is not None,
            numa_node=int(node[1]) if node else None,
            link=_lspci_link(body),
            bars=_lspci_bars(body),
            sriov=_lspci_sriov(body),
            name=match["name"],
        )
    return found


def _lspci_link(body: str) -> PcieLink:
    most, now = (re.search(rf"{kind}:\s.*?Speed ([\d.]+GT/s)[^,]*, Width x(\d+)", body) for kind in ("LnkCap", "LnkSta"))
    return PcieLink(
        generation=generation(now[1]) if now else None,
        width=_width(int(now[2])) if now else None,
        max_generation=generation(most[1]) if most else None,
        max_width=_width(int(most[2])) if most else None,
    )


_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def _lspci_bars(body: str) -> tuple[int, ...]:
    sizes = [0] * 6
    for number, size, unit in re.findall(r"Region (\d): Memory at .*\[size=(\d+)([KMGT]?)\]", body):
        if int(number) < 6:
            sizes[int(number)] = int(size) * _UNITS[unit]
    return tuple(sizes) if any(sizes) else ()


def _lspci_sriov(body: str) -> Sriov | None:
    found = re.search(r"Total VFs: (\d+), Number of VFs: (\d+)", body)
    return Sriov(total=int(found[1]), enabled=int(found[2])) if found else None
