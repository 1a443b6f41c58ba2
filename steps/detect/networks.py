"""The network interfaces."""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath
from typing import Any, Literal

import msgspec

from steps.detect import bridges, infiniband
from steps.detect.pci import Device
from steps.detect.probes import Probes
from steps.model.hardware import Network

NET = "/sys/class/net"
IP = ("ip", "-j", "addr")
Kind = Literal["ethernet", "infiniband", "wifi", "virtual", "loopback"]
_VIRTUAL = re.compile(
    r"^(docker|br-|virbr|veth|vnet|tun|tap|tailscale|wg|bond|team|dummy|cni|flannel|cali|lxcbr|lxdbr|podman|nerdctl|vmnet|vboxnet)"
)


def networks(host: Probes, bus: tuple[Device, ...]) -> tuple[Network, ...]:
    """Return the interfaces by name."""
    told = _told(host)
    addresses, masters, below = _addresses(host, told), _masters(told), _below(told)
    devices = {device.address: device for device in bus}
    names = (name for name in host.listdir(NET) or () if name != "bonding_masters")
    found = {name: _network(host, name, addresses.get(name, ()), masters.get(name)) for name in names}
    return tuple(
        msgspec.structs.replace(
            one,
            bridges=bridges.above(devices[one.device], bus) if one.device in devices else (),
            carriers=_carriers(found, below, one.name) if one.kind in ("virtual", None) else (),
        )
        for one in found.values()
    )


def _carriers(found: dict[str, Network], lower: dict[str, str], name: str) -> tuple[str, ...]:
    """Return the cards below a bond, team, bridge or VLAN, also where one lies over another; empty for any other interface."""
    below, masters = [], {name}
    # Each turn goes one floor down; more floors than interfaces cannot be.
    for _ in found:
        under = {lower[one] for one in masters if one in lower}
        members = [one for one in found.values() if (one.master in masters or one.name in under) and one.name not in masters]
        below += [one.name for one in members if one.kind in ("ethernet", "infiniband")]
        masters = {one.name for one in members}
    return tuple(dict.fromkeys(below))


def _network(host: Probes, name: str, addresses: tuple[str, ...], master: str | None) -> Network:
    at = f"{NET}/{name}"
    speed = host.number(f"{at}/speed")
    return Network(
        name=name,
        driver=_driver(host, at),
        kind=_kind(host, at, name),
        up=_up(host, at),
        speed_mbps=speed if speed is not None and speed > 0 else None,
        addresses=addresses,
        device=infiniband.device_address(host, at),
        numa_node=_node(host, at),
        master=master or _master(host, at),
    )


def _master(host: Probes, at: str) -> str | None:
    """Return the bond, team or bridge that an interface is a member of, by the kernel's link to it."""
    link = host.readlink(f"{at}/master")
    return PurePosixPath(link).name if link else None


def _node(host: Probes, at: str) -> int | None:
    """Return the NUMA node of the device behind an interface; the kernel says -1 when it does not know."""
    node = host.number(f"{at}/device/numa_node")
    return node if node is not None and node >= 0 else None


def _driver(host: Probes, at: str) -> str | None:
    """Return the driver bound to the device behind an interface; a virtio function's is one level up in name only."""
    driver = host.readlink(f"{at}/device/driver")
    if driver is None:
        # Only this driver makes an interface of a virtio device.
        return "virtio_net" if re.search(r"/virtio\d+$", host.readlink(f"{at}/device") or "") else None
    name = PurePosixPath(driver).name
    return "virtio_net" if name == "virtio-pci" else name


def _kind(host: Probes, at: str, name: str) -> Kind | None:
    """Return the kind by the kernel's hardware type (ARPHRD), the wireless folder and where the device hangs."""
    kind = host.number(f"{at}/type")
    if kind == 772 or name == "lo":
        return "loopback"
    if kind == 32:
        return "infiniband"
    if host.exists(f"{at}/wireless") or host.exists(f"{at}/phy80211") or name.startswith("wl"):
        return "wifi"
    if host.exists(f"{at}/device") or host.readlink(f"{at}/device") is not None:
        return "ethernet"
    if _VIRTUAL.match(name) or (host.readlink(at) or "").startswith("../../devices/virtual/"):
        return "virtual"
    return "ethernet" if kind == 1 else None


def _up(host: Probes, at: str) -> bool | None:
    """Return whether it carries traffic now; interfaces without a carrier of their own say "unknown" and are judged by their flags."""
    state = host.line(f"{at}/operstate")
    if state in ("up", "down", "dormant", "lowerlayerdown", "notpresent"):
        return state == "up"
    flags = host.number(f"{at}/flags")
    return bool(flags & 1) if flags is not None else None


def _told(host: Probes) -> tuple[dict[str, Any], ...]:
    """Return what `ip` prints of each interface; empty without `ip`."""
    result = host.run(IP)
    try:
        document = json.loads(result.stdout or "[]")
    except (ValueError, RecursionError):
        document = []
    listed = document if isinstance(document, list) else []
    return tuple(entry for entry in listed if isinstance(entry, dict) and isinstance(entry.get("ifname"), str))


def _masters(told: tuple[dict[str, Any], ...]) -> dict[str, str]:
    """Return of the members of bonds, teams and bridges what they belong to."""
    return {entry["ifname"]: entry["master"] for entry in told if isinstance(entry.get("master"), str)}


def _below(told: tuple[dict[str, Any], ...]) -> dict[str, str]:
    """Return of VLANs and their kin what each lies over; a cable between two virtual ends names the other end so, which is no card."""
    return {entry["ifname"]: entry["link"] for entry in told if isinstance(entry.get("link"), str)}


def _addresses(host: Probes, told: tuple[dict[str, Any], ...]) -> dict[str, tuple[str, ...]]:
    """Return the addresses by interface, as `ip` prints them; empty without `ip`."""
    found: dict[str, tuple[str, ...]] = {}
    for entry in told:
        listed = entry.get("addr_info")
        said = [info for info in listed if isinstance(info, dict)] if isinstance(listed, list) else []
        found[entry["ifname"]] = tuple(f"{info.get('local')}/{info.get('prefixlen')}" for info in said if info.get("local"))
    return found or _brief(host.run(("ip", "-br", "addr")).stdout if ("ip", "-br", "addr") in host.host.recorded() else "")


def _brief(text: str) -> dict[str, tuple[str, ...]]:
    lines = (line.split() for line in text.splitlines())
    return {words[0].partition("@")[0]: tuple(words[2:]) for words in lines if len(words) > 1}
