"""What is true of a captured machine, asked of what detection says; a wrong value counts twice."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from steps.detect.machine import detect
from steps.host.opening import open_host
from steps.model.machine import Machine

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MACHINES = Path(__file__).parent / "machines"
_VENDOR_WORDS = re.compile(
    r"\b(nvidia|amd|advanced micro devices|intel|corporation|geforce|tesla|quadro|instinct|radeon|inc|gpu|co|ltd)\b|[^a-z0-9]+"
)
_OTHER_MODEL = re.compile(r"ti|super|laptop|maxq|mobile")


class Fact(NamedTuple):
    """One question: what was wanted, what was said, and whether that is right."""

    name: str
    wanted: object
    got: object
    right: bool


@cache
def captures() -> dict[str, Path]:
    """Return the captures by name: ours, and those of the folders in `BRINGUP_CAPTURES`."""
    folders = [MACHINES, *(Path(part) for part in os.environ.get("BRINGUP_CAPTURES", "").split(":") if part)]
    return {path.stem: path for folder in folders[::-1] for path in sorted(folder.glob("*.json"))}


def names() -> tuple[str, ...]:
    return tuple(sorted(captures()))


def expected(name: str) -> dict[str, Any]:
    """Return what is true of a machine; nothing where nobody wrote it down."""
    told = captures()[name].with_name(f"{name}.expect.toml")
    found: dict[str, Any] = tomllib.loads(told.read_text(encoding="utf-8")).get("expected", {}) if told.exists() else {}
    return found


@cache
def machine(name: str) -> Machine:
    return detect(open_host(str(captures()[name]), None))


def detected(name: str) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(machine(name))
    return document


def squash(name: object) -> str:
    return _VENDOR_WORDS.sub("", str(name).lower())


def _same(got: object, want: object) -> bool:
    return got == want


def _same_words(got: object, want: object) -> bool:
    return squash(got) == squash(want)


def _same_name(got: object, want: object) -> bool:
    """One may say more than the other, but not about the model."""
    short, long = sorted((squash(got), squash(want)), key=len)
    return bool(short) and short in long and not _OTHER_MODEL.search(long.replace(short, "", 1)) and any(c.isdigit() for c in short)


def _near(share: float) -> Callable[[object, object], bool]:
    return lambda got, want: isinstance(got, int) and isinstance(want, int) and abs(got - want) <= share * want


class _Asking:
    """Collects the facts of one machine; what the capture cannot tell is not asked."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []

    def ask(self, name: str, want: object, got: object, test: Callable[[object, object], bool] = _same) -> None:
        if want is not None:
            self.facts.append(Fact(name, want, got, got is not None and test(got, want)))


def facts(expect: dict[str, Any], got: dict[str, Any]) -> list[Fact]:
    """Return every question that `expect` answers."""
    asking = _Asking()
    _system(asking, expect, got)
    _processor(asking, expect, got)
    _driver(asking, expect, got)
    _cards(asking, expect, got)
    _storage(asking, expect, got)
    return asking.facts


def _system(asking: _Asking, expect: dict[str, Any], got: dict[str, Any]) -> None:
    os, firmware = expect.get("os", {}), got["firmware"]
    for fact, key in (("id", "id"), ("version", "version_id"), ("kernel", "kernel"), ("gcc", "gcc")):
        asking.ask(f"os.{fact}", os.get(key), got["os"][fact])
    asking.ask("os.arch", expect.get("system", {}).get("arch"), got["os"]["arch"])
    asking.ask("firmware.product", expect.get("system", {}).get("product"), firmware["product"], _same_words)
    boot = expect.get("boot", {})
    asking.ask("firmware.uefi", boot.get("uefi"), firmware["uefi"])
    if "secure_boot" in boot:
        asking.ask("firmware.secure_boot", bool(boot["secure_boot"]), _whether(firmware["secure_boot"], "enabled"))
    if "enabled" in expect.get("iommu", {}):
        off = _whether(firmware["iommu"], "off")
        asking.ask("firmware.iommu", expect["iommu"]["enabled"], None if off is None else not off)


def _whether(got: str | None, word: str) -> bool | None:
    return None if got is None else got == word


def _processor(asking: _Asking, expect: dict[str, Any], got: dict[str, Any]) -> None:
    cpu, memory, states = expect.get("cpu", {}), expect.get("memory", {}), expect.get("cstates", {})
    for key in ("sockets", "cores", "threads", "numa_nodes", "pcie_lanes"):
        asking.ask(f"cpu.{key}", cpu.get(key), got["cpu"][key])
    asking.ask("cpu.model", cpu.get("model"), got["cpu"]["model"], _same_words)
    asking.ask("cpu.l3_bytes", int(cpu["l3_mib"] * (1 << 20)) if "l3_mib" in cpu else None, got["cpu"]["l3_bytes"])
    asking.ask("cpu.idle_driver", states.get("driver"), got["cpu"]["idle_driver"])
    asking.ask("cpu.idle_states", states.get("states") or None, [state["name"] for state in got["cpu"]["idle_states"] or ()])
    asking.ask("memory.total", memory["total_kib"] << 10 if "total_kib" in memory else None, got["memory"]["total_bytes"], _near(0.02))
    asking.ask("memory.ecc", memory.get("ecc"), got["memory"]["ecc"])
    asking.ask("memory.type", memory.get("type"), got["memory"]["type"], _same_words)


def _driver(asking: _Asking, expect: dict[str, Any], got: dict[str, Any]) -> None:
    driver = expect.get("driver", {})
    if not any(card.get("vendor") == "nvidia" for card in expect.get("gpu", [])):
        return
    asking.ask("driver.kernel_version", driver.get("version") if driver.get("loaded") else None, got["driver"]["kernel_version"])
    if driver.get("flavor") in ("open", "proprietary"):
        asking.ask("driver.flavor", driver["flavor"], got["driver"]["flavor"])
    works = driver.get("smi_works")
    state = got["driver"]["state"]
    asking.ask("driver.works", works, None if state == "unknown" else state == "working")


def _cards(asking: _Asking, expect: dict[str, Any], got: dict[str, Any]) -> None:
    found = {card["address"]: card for card in got["accelerators"]}
    wanted = [card for card in expect.get("gpu", []) if "bdf" in card]
    if expect and len(wanted) == len(expect.get("gpu", [])):
        for address in sorted(found.keys() - {card["bdf"] for card in wanted}):
            card = found[address]
            if card["vendor"] in ("nvidia", "amd", "habana") and not card["integrated"]:
                asking.facts.append(Fact(f"{address} exists", wanted=False, got=True, right=False))
    for want in wanted:
        card = found.get(want["bdf"])
        asking.ask(f"{want['bdf']} found", want=True, got=card is not None)
        if card is not None:
            _card(asking, want, card)


def _card(asking: _Asking, want: dict[str, Any], card: dict[str, Any]) -> None:
    at = want["bdf"]
    for fact, key, test in (
        ("vendor", "vendor", _same),
        ("pci_id", "pci_id", _same),
        ("name", "name", _same_name),
        ("chip", "chip", _same_words),
        ("architecture", "arch", _same_words),
        ("compute_capability", "compute_capability", _same),
        ("gfx", "gfx", _same),
        ("numa_node", "numa_node", lambda got, want: str(got) == str(want)),
    ):
        asking.ask(f"{at} {fact}", want.get(key) or None, card[fact], test)
    if "bound_driver" in want:
        bound = None if want["bound_driver"] == "none" else want["bound_driver"]
        asking.facts.append(Fact(f"{at} kernel_driver", bound, card["kernel_driver"], card["kernel_driver"] == bound))
    for fact, key, test in (("memory_bytes", "vram_mib", _near(0.07)), ("bar1_bytes", "bar1_mib", _same)):
        asking.ask(f"{at} {fact}", want[key] << 20 if want.get(key) else None, card[fact], test)
    link = card["pcie"] or {}
    for fact, key in (
        ("generation", "pcie_gen_cur"),
        ("max_generation", "pcie_gen_max"),
        ("width", "pcie_width_cur"),
        ("max_width", "pcie_width_max"),
    ):
        asking.ask(f"{at} {fact}", want.get(key), link.get(fact))


def _storage(asking: _Asking, expect: dict[str, Any], got: dict[str, Any]) -> None:
    disks = {disk["name"]: disk for disk in got["disks"]}
    for want in expect.get("disk", []):
        disk = disks.get(want["dev"], {})
        tier = {"sata-ssd": "ssd"}.get(want.get("tier"), want.get("tier"))
        asking.ask(f"{want['dev']} tier", tier, disk.get("tier"))
        asking.ask(f"{want['dev']} bytes", want.get("size_bytes"), disk.get("bytes"), _near(0.01))
    networks = {network["name"]: network for network in got["networks"]}
    for want in expect.get("nic", []):
        network = networks.get(want["name"], {})
        asking.ask(f"{want['name']} driver", want.get("driver"), network.get("driver"))
        if want.get("state") in ("up", "down"):
            asking.ask(f"{want['name']} up", want["state"] == "up", network.get("up"))


def wrong(found: list[Fact]) -> Iterator[str]:
    """Yield a line for every fact that is not right."""
    return (f"{fact.name}: wanted {fact.wanted!r}, got {fact.got!r}" for fact in found if not fact.right)
