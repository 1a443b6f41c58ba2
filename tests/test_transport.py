"""How the ranks' data goes: from card to card, over RDMA devices, as the facts and NCCL's own choice have it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from steps import nccl as step
from steps.compat import transport
from steps.model.hardware import Accelerator, Bridge, Cpu, Firmware, InfinibandPort, Link, Network
from steps.model.machine import Machine
from steps.model.profile import Profile
from steps.model.software import Os, Ranks, Told
from steps.text import say
from tests.test_ranks import GEFORCE, H100, codes, machine


def switched(address: str, *, redirects: bool = False) -> tuple[Accelerator, tuple[Bridge, ...]]:
    card = Accelerator(
        address=f"0000:{address}:00.0",
        vendor="nvidia",
        name="NVIDIA A100",
        architecture="ampere",
        bridges=("0000:00:01.0", "0000:01:00.0", f"0000:02:{address}.0"),
    )
    return card, (Bridge(address=f"0000:02:{address}.0", redirects=redirects),)


@pytest.mark.parametrize(
    ("card", "kind", "facts", "way", "reason"),
    [
        (H100, "NV18", {}, "nvlink", None),
        (GEFORCE, "PHB", {}, "memory", "policy"),
        (H100, "PIX", {}, "pcie", None),
        (H100, "PIX", {"firmware": Firmware(iommu="on")}, "detour", "iommu"),
        (H100, "PIX", {"firmware": Firmware(iommu="passthrough")}, "pcie", None),
        (H100, "PXB", {}, "pcie", None),
        # Over a processor NCCL goes through its memory by itself, but where two cards sit beside AMD's.
        (H100, "PHB", {"cpu": Cpu(vendor="GenuineIntel")}, "memory", "processor"),
        (H100, "NODE", {"cpu": Cpu(vendor="GenuineIntel")}, "memory", "processor"),
        (H100, "SYS", {"cpu": Cpu(vendor="GenuineIntel")}, "memory", "processor"),
        (H100, "PHB", {"cpu": Cpu(vendor="AuthenticAMD")}, "pcie", None),
        (H100, "SYS", {"cpu": Cpu(vendor="AuthenticAMD")}, "unknown", "sockets"),
        (H100, "PHB", {}, "unknown", None),
        (H100, "PHB", {"os": Os(virtualization="kvm")}, "unknown", None),
        (H100, None, {}, "unknown", None),
    ],
)
def test_a_pair_goes_the_way_that_the_facts_allow(
    card: Accelerator, kind: str | None, facts: dict[str, Any], way: str, reason: str | None
) -> None:
    found = machine(card, links=(Link(a=0, b=1, kind=kind),) if kind else (), **facts)
    (pair,) = transport.pairs(found)
    assert (pair.way, pair.reason) == (way, reason)


def test_of_more_than_two_cards_none_copies_directly_over_a_processor_by_itself() -> None:
    three = machine(count=3, cpu=Cpu(vendor="AuthenticAMD"), links=tuple(Link(a=a, b=b, kind="PHB") for a, b in ((0, 1), (0, 2), (1, 2))))
    assert {(one.way, one.reason) for one in transport.pairs(three)} == {("memory", "processor")}


@pytest.mark.parametrize(
    ("states", "asked", "severity"),
    [
        (("down", "down"), None, "info"),
        (("down", "down"), "auto", "warning"),
        (("init", "down"), None, "warning"),
        (("down", "active"), "auto", None),
        (("down", None), "auto", None),
        (("down",), "off", None),
        ((), "auto", None),
    ],
)
def test_infiniband_none_of_whose_ports_is_active_is_told_for_nccl_takes_sockets_without_a_word(
    states: tuple[str | None, ...], asked: str | None, severity: str | None
) -> None:
    ports = tuple(InfinibandPort(device=f"mlx5_{at}", port=1, link_layer="InfiniBand", state=state) for at, state in enumerate(states))
    assert codes(machine(infiniband=ports), infiniband=asked).get("nccl-infiniband-down") == severity


ROCE = InfinibandPort(device="mlx5_0", port=1, link_layer="Ethernet", state="active", interface="ens1")
BARE = Network(name="ens1", kind="ethernet", driver="mlx5_core", up=True, addresses=("fe80::1/64",))
ENO1 = Network(name="eno1", kind="ethernet", driver="igb", up=True, addresses=("10.0.0.5/24",))
BOND = Network(name="bond0", kind="virtual", up=True, addresses=("10.1.0.5/24",), carriers=("ens1",))


@pytest.mark.parametrize(
    ("networks", "answers", "severity"),
    [
        ((ENO1, BARE), {}, "info"),
        ((ENO1, BARE), {"infiniband": "auto"}, "warning"),
        ((ENO1, BARE), {"infiniband": "off"}, None),
        ((ENO1, BARE), {"extra": {"NCCL_IB_GID_INDEX": "3"}}, None),
        ((ENO1, msgspec.structs.replace(BARE, addresses=("10.1.0.5/24",))), {}, None),
        ((ENO1, BARE, BOND), {}, None),
        # Where no address is known at all, none is missing.
        ((BARE,), {}, None),
    ],
)
def test_a_roce_port_without_an_address_is_told_for_its_gid_leads_no_farther_than_the_switch(
    networks: tuple[Network, ...], answers: dict[str, Any], severity: str | None
) -> None:
    assert codes(machine(networks=networks, infiniband=(ROCE,)), **answers).get("nccl-roce-no-address") == severity


def test_the_row_of_infiniband_says_what_is_wrong_with_its_ports() -> None:
    def row(found: Machine) -> tuple[str, str, list[str]]:
        option = next(one for one in step.choices(found, Profile())[1].options if one.value == "infiniband")
        return option.mark, say("en", option.tag), [one.code for one in option.findings]

    assert row(machine(networks=(ENO1, BOND), infiniband=(ROCE,))) == ("good", "there", [])
    assert row(machine(networks=(ENO1, BARE), infiniband=(ROCE,))) == ("catch", "there", ["nccl-roce-no-address"])
    unplugged = msgspec.structs.replace(ROCE, state="down")
    assert row(machine(networks=(ENO1, BARE), infiniband=(unplugged,))) == ("catch", "down", ["nccl-infiniband-down"])


def test_a_card_is_no_rdma_device_where_the_kernel_was_asked_for_them_and_has_none() -> None:
    broadcom = Network(name="eno1", kind="ethernet", driver="bnxt_en", up=True, addresses=("10.0.0.5/24",))
    assert transport.has_rdma(machine(networks=(broadcom,)))
    looked = machine(networks=(broadcom,), ranks=Ranks(rdma=False, memlock=8 << 20))
    assert not transport.has_rdma(looked)
    # A limit on locked memory is nothing to it then.
    assert "nccl-memlock-low" not in codes(looked)


@pytest.mark.parametrize(("redirects", "way"), [(True, "detour"), (False, "pcie")])
def test_a_bridge_that_redirects_between_two_cards_is_a_detour(redirects: bool, way: str) -> None:
    one, above_one = switched("03", redirects=redirects)
    two, above_two = switched("04")
    found = Machine(accelerators=(one, two), bridges=(*above_one, *above_two), links=(Link(a=0, b=1, kind="PIX"),), told=Told(nvlink=True))
    assert transport.pairs(found)[0].way == way


def test_pairs_that_go_the_same_way_stand_in_one_line() -> None:
    eight = machine(count=8, links=tuple(Link(a=a, b=b, kind="NV18") for a in range(8) for b in range(a + 1, 8)))
    assert [names for names, _ in transport.groups(transport.pairs(eight))] == [""]
    mixed = machine(count=3, links=(Link(a=0, b=1, kind="NV4"), Link(a=0, b=2, kind="SYS"), Link(a=1, b=2, kind="SYS")))
    assert [names for names, _ in transport.groups(transport.pairs(mixed))] == ["0-1", "0-2 1-2"]


@pytest.mark.parametrize(("card", "way"), [(H100, "unknown"), (msgspec.structs.replace(H100, chip="GP108"), "pcie")])
def test_where_the_driver_did_not_say_what_nvlink_joins_the_pci_tree_tells_only_of_cards_that_have_none(
    card: Accelerator, way: str
) -> None:
    found = machine(card, links=(Link(a=0, b=1, kind="PIX"),), told=Told())
    assert [one.way for one in transport.pairs(found)] == [way]


def test_a_network_device_is_near_the_cards_below_the_same_switch() -> None:
    one, _ = switched("03")
    far = Accelerator(address="0000:81:00.0", vendor="nvidia", name="NVIDIA A100", architecture="ampere", bridges=("0000:80:01.0",))
    port = InfinibandPort(device="mlx5_0", port=1, bridges=("0000:00:01.0", "0000:01:00.0", "0000:02:09.0"))
    assert transport.near(Machine(accelerators=(one, far)), port) == (0,)
