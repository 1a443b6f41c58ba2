"""`nvidia-smi -q -x`: the long answer as XML, in the names of the plain one."""

from __future__ import annotations

import re
from collections.abc import Mapping

_TOKEN = re.compile(r"<(/?)([A-Za-z_][\w.-]{0,80})([^<>]{0,400}?)(/?)>([^<]*)")
_LINK = "pci/pci_gpu_link_info"
_LIMITS = {
    "current_power_limit": "Current Power Limit",
    "power_limit": "Power Limit",
    "default_power_limit": "Default Power Limit",
    "max_power_limit": "Max Power Limit",
}
_NAMES = {
    "product_name": "Product Name",
    "fb_memory_usage/total": "FB Memory Usage/Total",
    "bar1_memory_usage/total": "BAR1 Memory Usage/Total",
    f"{_LINK}/pcie_gen/current_link_gen": "PCI/GPU Link Info/PCIe Generation/Current",
    f"{_LINK}/pcie_gen/max_link_gen": "PCI/GPU Link Info/PCIe Generation/Max",
    f"{_LINK}/link_widths/current_link_width": "PCI/GPU Link Info/Link Width/Current",
    f"{_LINK}/link_widths/max_link_width": "PCI/GPU Link Info/Link Width/Max",
    "ecc_mode/current_ecc": "ECC Mode/Current",
    "mig_mode/current_mig": "MIG Mode/Current",
    "utilization/gpu_util": "Utilization/Gpu",
    "performance_state": "Performance State",
    "fan_speed": "Fan Speed",
    **{f"gpu_power_readings/{entry}": f"GPU Power Readings/{words}" for entry, words in _LIMITS.items()},
    **{f"power_readings/{entry}": f"Power Readings/{words}" for entry, words in _LIMITS.items()},
    **{
        f"clocks_{word}_reasons/clocks_{word}_reason_{entry}": f"Clocks {word.capitalize()} Reasons/{words}"
        for word in ("throttle", "event")
        for entry, words in (("hw_thermal_slowdown", "HW Thermal Slowdown"), ("hw_power_brake_slowdown", "HW Power Brake Slowdown"))
    },
}
_ENTITIES = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'"}
_DEEPEST = 40


def from_xml(text: str) -> tuple[Mapping[str, str], tuple[Mapping[str, str], ...]]:
    """Return the entries of the head by their tags, and those of each GPU as `nvidia-smi -q` names them.

    Tags are read one after the other, so what was cut off keeps its beginning, and no entity of a document's own is expanded.
    """
    head: dict[str, str] = {}
    cards: list[dict[str, str]] = []
    trail: list[str] = []
    for closing, tag, attributes, empty, content in _TOKEN.findall(text):
        if closing:
            if tag in trail:
                del trail[len(trail) - 1 - trail[::-1].index(tag) :]
            continue
        if tag == "gpu" and trail == ["nvidia_smi_log"]:
            address = re.search(r'id="([0-9A-Fa-f:.]{7,20})"', attributes)
            cards.append({"address": address[1] if address else ""})
        if empty or len(trail) >= _DEEPEST:
            continue
        trail.append(tag)
        value = _plain(content)
        if trail[:2] == ["nvidia_smi_log", "gpu"] and cards:
            name = _NAMES.get("/".join(trail[2:]))
            if name and value:
                cards[-1].setdefault(name, value)
        elif len(trail) == 2 and value:
            head[tag] = value
    return head, tuple(cards)


def _plain(content: str) -> str:
    return re.sub(r"&(?:amp|lt|gt|quot|apos);", lambda found: _ENTITIES[found[0]], content.strip())
