"""What nvidia-smi says, in any of the forms in which it is asked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal

from steps.detect import smi_xml
from steps.detect.probes import Probes
from steps.detect.smi_values import SmiGpu, address, limit, mebibytes, percent, state, switch, whole
from steps.host.base import Result
from steps.host.local import NO_ANSWER
from steps.model.base import Record
from steps.model.hardware import PcieLink

Trouble = Literal["mismatch", "no-driver", "no-devices", "no-permission", "failing"]
TIMED_OUT = 124
"""The status by which `timeout` says that it stopped a program."""
WSL_SMI = "/usr/lib/wsl/lib/nvidia-smi"


class Smi(Record):
    """All answers together; `installed` is `None` when nobody asked."""

    installed: bool | None = None
    trouble: Trouble | None = None
    hangs: bool = False
    """Whether it was stopped because it did not end."""
    said: str | None = None
    """The line that told of the trouble."""
    driver_version: str | None = None
    library_version: str | None = None
    cuda_version: str | None = None
    gpus: tuple[SmiGpu, ...] = ()


def smi(host: Probes) -> Smi:
    """Return what the machine's nvidia-smi says in all forms that can be had."""
    found = Smi()
    for argv in _spellings(host):
        found = merged(found, parse(argv, host.run(argv, timeout=15)))
    return found


def _spellings(host: Probes) -> Iterator[tuple[str, ...]]:
    recorded = [argv for argv in host.host.recorded() if argv[0].rsplit("/", 1)[-1] in ("nvidia-smi", "nvidia-smi.exe") and _parsed(argv)]
    if recorded:
        yield from sorted(recorded, key=lambda argv: (len(argv) == 1, argv))
        return
    program = WSL_SMI if host.exists(WSL_SMI) else "nvidia-smi"
    yield (program, "-q")


def _parsed(argv: tuple[str, ...]) -> bool:
    """Return whether the form is one of those that tell of the driver and the GPUs."""
    return len(argv) == 1 or any(part in ("-q", "-L", "-x") for part in argv[1:]) or any(part.startswith("--query-gpu") for part in argv)


def parse(argv: tuple[str, ...], result: Result) -> Smi:
    """Return what one answer says."""
    text = result.text
    if result.status == 127 or (result.status is None and ABSENT.search(text)):
        return Smi(installed=False)
    if NO_ANSWER in result.stderr or (result.status == TIMED_OUT and not text.strip()):
        return Smi(installed=True, hangs=True)
    if result.status is None and not text:
        return Smi()
    trouble, said = _trouble(text, result.status)
    if trouble is not None:
        version = re.search(r"NVML library version: ([\d.]+)", text)
        return Smi(installed=True, trouble=trouble, said=said, library_version=version[1] if version else None)
    query = next((part for part in argv if part.startswith("--query-gpu")), None)
    if query is not None:
        return _from_query(query.partition("=")[2].split(","), text)
    if "-L" in argv:
        names = re.findall(r"^GPU \d+: (.+?) \(UUID", text, re.MULTILINE)
        return Smi(installed=True, gpus=tuple(SmiGpu(name=name) for name in names))
    if "-x" in argv or text.lstrip().startswith("<?xml"):
        return _from_x(text)
    return _from_q(text) if "-q" in argv else _from_table(text)


ABSENT = re.compile(r"nvidia-smi['’]?:? .{0,30}not found|not found: nvidia-smi|^[^\n]{0,40}\bnvidia-smi: [^\n:]{3,40}$")
"""What shells say, in whatever language, where the status was not told."""
_TROUBLES: tuple[tuple[str, Trouble], ...] = (
    (r"Driver/library version mismatch", "mismatch"),
    (r"could(?:n't| not) communicate with the NVIDIA driver", "no-driver"),
    (r"No devices were found", "no-devices"),
    (r"Insufficient Permissions", "no-permission"),
    (r"Unable to determine the device handle|Failed to initialize NVML|GPU is lost|Unknown Error", "failing"),
)


def _trouble(text: str, status: int | None) -> tuple[Trouble | None, str | None]:
    if "NVSMI LOG" in text or "<nvidia_smi_log>" in text:
        # A field of one GPU may read "Unknown Error" in an answer that is otherwise whole.
        return None, None
    for pattern, trouble in _TROUBLES:
        line = re.search(rf"^.*(?:{pattern}).*$", text, re.MULTILINE)
        if line:
            return trouble, line[0].strip()
    if status not in (0, None):
        return "failing", text.strip().partition("\n")[0] or None
    return None, None


_ROW = re.compile(
    r"^\|\s+\d+\s+(?P<name>\S.*?)\s+(?:On|Off|N/A|ERR!)\s+\|\s+(?P<address>[0-9A-Fa-f:]{7,16}\.[0-7]|N/A)\s.*\n"
    r"\|(?P<power>[^|\n]*)\|(?:[^|\n]*?/\s*(?P<memory>\d+MiB)?|\s*Not Supported)[^|\n]*(?:\|\s*(?P<busy>\d{1,3})%)?",
    re.MULTILINE,
)
_POWER_CELL = re.compile(r"\s*(?P<fan>\d{1,3}%)?.*?(?:\s(?P<state>P\d{1,2})\s.*?)?(?:/\s*(?P<watts>\d{1,5})W)?\s*")


def _from_table(text: str) -> Smi:
    """Return what the plain table says, in the wording of branch 610 too; names that it had to cut stand apart."""
    gpus = [_gpu_of_row(row) for row in _ROW.finditer(text)]
    return Smi(
        installed=True,
        driver_version=_after(text, "Driver Version|KMD Version"),
        cuda_version=_after(text, "CUDA Version|CUDA UMD Version"),
        gpus=tuple(gpus),
    )


def _gpu_of_row(row: re.Match[str]) -> SmiGpu:
    cell = _POWER_CELL.fullmatch(row["power"])
    return SmiGpu(
        address=address(row["address"]),
        name=None if row["name"].endswith("..") else row["name"],
        cut_name=row["name"].rstrip(". ") if row["name"].endswith("..") else None,
        memory_bytes=mebibytes((row["memory"] or "").replace("MiB", " MiB")),
        utilization=whole(row["busy"]),
        performance_state=state(cell["state"]) if cell else None,
        power=limit(cell["watts"], None, None) if cell else None,
        fan_percent=percent(cell["fan"]) if cell else None,
    )


def _after(text: str, label: str) -> str | None:
    found = re.search(rf"(?:{label})\s*:\s*(\d[\d.]*)", text)
    return found[1] if found else None


# -- nvidia-smi -q ----------------------------------------------------------------------------------------------------


def _from_q(text: str) -> Smi:
    gpus = [_gpu_of(entries) for entries in _sections(text)]
    head = re.split(r"^GPU [0-9A-Fa-f]", text, maxsplit=1, flags=re.MULTILINE)[0]
    return Smi(
        installed=True,
        driver_version=_after(head, "Driver Version|KMD Version"),
        cuda_version=_after(head, "CUDA Version|CUDA UMD Version"),
        gpus=tuple(gpus),
    )


def _from_x(text: str) -> Smi:
    head, cards = smi_xml.from_xml(text)
    driver, cuda = head.get("driver_version") or head.get("kmd_version"), head.get("cuda_version") or head.get("cuda_umd_version")
    return Smi(
        installed=True,
        driver_version=driver if driver and driver[0].isdigit() else None,
        cuda_version=cuda if cuda and cuda[0].isdigit() else None,
        gpus=tuple(_gpu_of(entries) for entries in cards),
    )


def _sections(text: str) -> Iterator[Mapping[str, str]]:
    """Yield each GPU's entries by their path (`PCI/GPU Link Info/PCIe Generation/Max`)."""
    entries: dict[str, str] | None = None
    trail: list[tuple[int, str]] = []
    for line in text.splitlines():
        head = re.match(r"^GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])", line)
        if head:
            if entries is not None:
                yield entries
            entries, trail = {"address": head[1]}, []
            continue
        if entries is None or not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        name, colon, value = line.strip().partition(" : ")
        while trail and trail[-1][0] >= indent:
            trail.pop()
        if colon:
            entries["/".join([*(part for _, part in trail), name.strip()])] = value.strip()
        trail.append((indent, name.strip().rstrip(":").strip()))
    if entries is not None:
        yield entries


def _gpu_of(entries: Mapping[str, str]) -> SmiGpu:
    def at(*paths: str) -> str | None:
        return next((entries[path] for path in paths if path in entries and entries[path] not in ("N/A", "[N/A]", "Unknown Error")), None)

    link = "PCI/GPU Link Info"
    return SmiGpu(
        address=address(entries["address"]),
        name=at("Product Name"),
        memory_bytes=mebibytes(at("FB Memory Usage/Total")),
        bar1_bytes=mebibytes(at("BAR1 Memory Usage/Total")),
        link=PcieLink(
            generation=whole(at(f"{link}/PCIe Generation/Current")),
            max_generation=whole(at(f"{link}/PCIe Generation/Max")),
            width=whole(at(f"{link}/Link Width/Current")),
            max_width=whole(at(f"{link}/Link Width/Max")),
        ),
        ecc=switch(at("ECC Mode/Current", "Ecc Mode/Current")),
        mig=switch(at("MIG Mode/Current")),
        utilization=whole(at("Utilization/Gpu", "Utilization/GPU")),
        performance_state=state(at("Performance State")),
        power=limit(
            at(*(f"{part}/{name}" for part in _POWER for name in ("Current Power Limit", "Power Limit"))),
            at(*(f"{part}/Default Power Limit" for part in _POWER)),
            at(*(f"{part}/Max Power Limit" for part in _POWER)),
        ),
        fan_percent=percent(at("Fan Speed")),
        slowed=_slowed({name: at(*(f"{part}/{entry}" for part in _REASONS for entry in entries)) for name, entries in _SLOWED.items()}),
    )


_POWER = ("GPU Power Readings", "Power Readings")
_REASONS = ("Clocks Event Reasons", "Clocks Throttle Reasons")
_SLOWED = {
    "thermal": ("HW Slowdown/HW Thermal Slowdown", "HW Thermal Slowdown"),
    "power-brake": ("HW Slowdown/HW Power Brake Slowdown", "HW Power Brake Slowdown"),
}


def _slowed(reasons: Mapping[str, str | None]) -> tuple[str, ...] | None:
    """Return the reasons that are active; `None` where none of them was told."""
    told = {name: said for name, said in reasons.items() if said is not None}
    return tuple(name for name, said in told.items() if said == "Active") if told else None


# -- nvidia-smi --query-gpu -------------------------------------------------------------------------------------------


def _from_query(fields: list[str], text: str) -> Smi:
    fields = [field.strip() for field in fields]
    # nvidia-smi quotes nothing, so neither is anything unquoted here.
    lines = [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]
    records = [dict(zip(fields, line, strict=True)) for line in lines if len(line) == len(fields)]
    # The heading repeats the first field's own name, with or without a unit.
    records = [record for record in records if not record[fields[0]].startswith(fields[0])]
    versions = {record["driver_version"] for record in records if record.get("driver_version", "")[:1].isdigit()}
    return Smi(
        installed=True,
        driver_version=versions.pop() if len(versions) == 1 else None,
        gpus=tuple(_gpu_of_record(record) for record in records),
    )


def _gpu_of_record(record: Mapping[str, str]) -> SmiGpu:
    def at(*names: str) -> str | None:
        return next((record[name] for name in names if record.get(name) and not re.match(r"\[?N/A|\[", record[name])), None)

    capability = at("compute_cap")
    return SmiGpu(
        address=address(at("pci.bus_id", "gpu_bus_id") or ""),
        name=at("name", "gpu_name"),
        memory_bytes=mebibytes(at("memory.total")),
        compute_capability=capability if capability and re.fullmatch(r"\d+\.\d+", capability) else None,
        link=PcieLink(
            generation=whole(at("pcie.link.gen.gpucurrent", "pcie.link.gen.current")),
            max_generation=whole(at("pcie.link.gen.max")),
            width=whole(at("pcie.link.width.current")),
            max_width=whole(at("pcie.link.width.max")),
        ),
        ecc=switch(at("ecc.mode.current")),
        mig=switch(at("mig.mode.current")),
        utilization=whole(at("utilization.gpu")),
        performance_state=state(at("pstate")),
        power=limit(at("power.limit", "enforced.power.limit"), at("power.default_limit"), at("power.max_limit")),
        fan_percent=percent(at("fan.speed")),
        slowed=_slowed(
            {
                "thermal": at("clocks_event_reasons.hw_thermal_slowdown", "clocks_throttle_reasons.hw_thermal_slowdown"),
                "power-brake": at("clocks_event_reasons.hw_power_brake_slowdown", "clocks_throttle_reasons.hw_power_brake_slowdown"),
            }
        ),
    )


# -- several answers --------------------------------------------------------------------------------------------------


def merged(first: Smi, then: Smi) -> Smi:
    """Return both answers as one; what the first already told stays."""
    gpus = first.gpus or then.gpus
    if first.gpus and len(first.gpus) == len(then.gpus):
        gpus = tuple(_filled(a, b) for a, b in zip(first.gpus, then.gpus, strict=True))
    return Smi(
        installed=first.installed if first.installed is not None else then.installed,
        trouble=first.trouble or then.trouble,
        said=first.said or then.said,
        hangs=first.hangs or then.hangs,
        driver_version=first.driver_version or then.driver_version,
        library_version=first.library_version or then.library_version,
        cuda_version=first.cuda_version or then.cuda_version,
        gpus=gpus,
    )


def _filled(first: SmiGpu, then: SmiGpu) -> SmiGpu:
    """Return the first answer about a GPU with its gaps filled from the second, when both speak of the same one."""
    if first.address and then.address and first.address != then.address:
        return first
    pairs = {field: (getattr(first, field), getattr(then, field)) for field in SmiGpu.__struct_fields__}
    told = {field: mine if mine is not None else theirs for field, (mine, theirs) in pairs.items()}
    return SmiGpu(**{**told, "link": first.link if first.link != PcieLink() else then.link})
