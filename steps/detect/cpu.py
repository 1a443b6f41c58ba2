"""The processors: how many, their caches and lanes, and how they sleep."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from steps.catalog import devices as catalog
from steps.detect.probes import Probes
from steps.model.hardware import Cpu, IdleState

ASKED = (("lscpu", "-J"),)
CPUS = "/sys/devices/system/cpu"
_VENDORS = {"GenuineIntel": "intel", "AuthenticAMD": "amd", "ARM": "arm", "HygonGenuine": "hygon", "NVIDIA": "nvidia"}


def cpu(host: Probes, *, bare_metal: bool) -> Cpu:
    """Return the facts about all processors; lanes are those of the chips, which a virtual machine does not have."""
    told = lscpu(host)
    info = host.read("/proc/cpuinfo") or ""
    model = _model(told, info)
    sockets = _sockets(host, told, info)
    driver = host.line(f"{CPUS}/cpuidle/current_driver")
    row = catalog.cpu(model) if model else None
    return Cpu(
        model=model,
        vendor=_vendor(told, info),
        sockets=sockets,
        cores=_cores(host, told, info),
        threads=_threads(host, told, info),
        l3_bytes=_l3(host, told, row, sockets),
        numa_nodes=_nodes(host, told),
        pcie_lanes=_lanes(row, sockets) if bare_metal else None,
        governor=host.line(f"{CPUS}/cpu0/cpufreq/scaling_governor") or host.line(f"{CPUS}/cpufreq/policy0/scaling_governor"),
        idle_driver=driver,
        idle_states=_idle_states(host) if driver is not None else None,
    )


def lscpu(host: Probes) -> Mapping[str, tuple[str, ...]]:
    """Return lscpu's fields, each with all its values (two kinds of core are two models); empty without lscpu."""
    result = host.first(("lscpu", "-J"), ("lscpu",))
    pairs: list[tuple[str, str]] = []
    try:
        document = json.loads(result.stdout) if result.stdout.lstrip().startswith("{") else None
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict):
        _collect(document.get("lscpu"), pairs, 0)
    else:
        pairs = [
            (name.strip(), value.strip()) for name, colon, value in (line.partition(":") for line in result.stdout.splitlines()) if colon
        ]
    found: dict[str, tuple[str, ...]] = {}
    for name, value in pairs:
        found[name] = (*found.get(name, ()), value)
    return found


def _collect(fields: object, pairs: list[tuple[str, str]], depth: int) -> None:
    """Gather the fields of lscpu's tree; newer versions nest them."""
    if not isinstance(fields, list) or depth > 8:
        return
    for field in fields:
        if isinstance(field, dict):
            name, value = field.get("field"), field.get("data")
            if isinstance(name, str) and isinstance(value, str):
                pairs.append((name.strip().rstrip(":"), value.strip()))
            _collect(field.get("children"), pairs, depth + 1)


def _first(told: Mapping[str, tuple[str, ...]], name: str) -> str | None:
    return told[name][0] if told.get(name) else None


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,18}", text) else None


def _model(told: Mapping[str, tuple[str, ...]], info: str) -> str | None:
    names = tuple(dict.fromkeys(name for name in told.get("Model name", ()) if name not in ("", "-")))
    if names:
        return " + ".join(names)
    found = re.search(r"^model name\s*:\s*(\S.*?)\s*$", info, re.MULTILINE)
    return found[1] if found else None


def _vendor(told: Mapping[str, tuple[str, ...]], info: str) -> str | None:
    found = re.search(r"^vendor_id\s*:\s*(\S+)", info, re.MULTILINE)
    name = found[1] if found else _first(told, "Vendor ID")
    if name is None and re.search(r"^CPU implementer\s*:\s*0x41", info, re.MULTILINE):
        return "arm"
    return None if name is None else _VENDORS.get(name, name.lower())


def _topology(host: Probes, leaf: str) -> list[str]:
    return [text for path in host.glob(f"{CPUS}/cpu[0-9]*/topology/{leaf}") if (text := host.line(path)) is not None]


def _sockets(host: Probes, told: Mapping[str, tuple[str, ...]], info: str) -> int | None:
    packages = {name for name in _topology(host, "physical_package_id") if name.isdigit()}
    listed = set(re.findall(r"^physical id\s*:\s*(\d+)", info, re.MULTILINE))
    # Of /proc/cpuinfo, which is long, a report may hold the beginning only.
    return len(packages) or _number(_first(told, "Socket(s)")) or len(listed) or None


def _cores(host: Probes, told: Mapping[str, tuple[str, ...]], info: str) -> int | None:
    siblings = set(_topology(host, "thread_siblings_list"))
    if siblings:
        return len(siblings)
    # Two kinds of core have a line each.
    each = [_number(text) for text in told.get("Core(s) per socket", ())]
    sockets = [_number(text) for text in told.get("Socket(s)", ())]
    counted = sum(cores * places for cores, places in zip(each, sockets, strict=False) if cores and places)
    listed = set(re.findall(r"^physical id\s*:\s*(\d+)\n(?:.*\n)*?core id\s*:\s*(\d+)", info, re.MULTILINE))
    return counted or len(listed) or None


def _threads(host: Probes, told: Mapping[str, tuple[str, ...]], info: str) -> int | None:
    listed = len(re.findall(r"^processor\s*:", info, re.MULTILINE))
    said = span(_first(told, "On-line CPU(s) list")) or _number(_first(told, "CPU(s)"))
    return span(host.line(f"{CPUS}/online")) or said or listed or None


def span(text: str | None) -> int:
    """Return how many numbers `0-3,8` names; 0 for what is no such list."""
    total = 0
    for first, last in re.findall(r"(\d{1,7})(?:-(\d{1,7}))?", text or ""):
        total += max(0, int(last or first) - int(first) + 1)
    return total


def _l3(host: Probes, told: Mapping[str, tuple[str, ...]], row: catalog.CpuRow | None, sockets: int | None) -> int | None:
    """Return all third-level caches together: each is counted once, by the processors that share it."""
    if row is not None and row.l3_mib is not None and sockets == 1:
        return int(row.l3_mib * (1 << 20))
    caches: dict[str, int] = {}
    for path in host.glob(f"{CPUS}/cpu[0-9]*/cache/index*/level"):
        at = path.removesuffix("/level")
        if host.line(path) == "3":
            size = _bytes(host.line(f"{at}/size"))
            if size is not None:
                caches[host.line(f"{at}/shared_cpu_list") or at] = size
    if caches:
        return sum(caches.values())
    # Older versions of lscpu print the size of one cache (`16384K`); those that write `64 MiB` add up.
    summed = _first(told, "L3 cache") or _first(told, "L3") or ""
    return _bytes(summed) if "iB" in summed else None


_UNITS = {"K": 1 << 10, "KiB": 1 << 10, "M": 1 << 20, "MiB": 1 << 20, "G": 1 << 30, "GiB": 1 << 30}


def _bytes(text: str | None) -> int | None:
    found = re.match(r"([\d.]+)\s*(KiB|MiB|GiB|K|M|G)", text or "")
    return round(float(found[1]) * _UNITS[found[2]]) if found and found[1].count(".") <= 1 and found[1] != "." else None


def _nodes(host: Probes, told: Mapping[str, tuple[str, ...]]) -> int | None:
    return span(host.line("/sys/devices/system/node/online")) or _number(_first(told, "NUMA node(s)"))


def _lanes(row: catalog.CpuRow | None, sockets: int | None) -> int | None:
    if row is None or row.pcie_lanes is None or sockets is None:
        return None
    return row.pcie_lanes * sockets if sockets == 1 or row.together else None


def _idle_states(host: Probes) -> tuple[IdleState, ...]:
    states: list[IdleState] = []
    folders = sorted(
        (path.removesuffix("/name") for path in host.glob(f"{CPUS}/cpu0/cpuidle/state*/name")), key=lambda path: (len(path), path)
    )
    for at in folders:
        name, disabled = host.line(f"{at}/name"), host.line(f"{at}/disable")
        if name is not None:
            states.append(
                IdleState(name=name, latency_us=host.number(f"{at}/latency"), enabled={"0": True, "1": False}.get(disabled or ""))
            )
    return tuple(states)
