"""The NCCL step: the file as it will be written, the interfaces it may name, and what is said about both."""

from __future__ import annotations

import msgspec
import pytest

from steps import nccl
from steps.catalog import stack
from steps.compat import interfaces, nccl_conf, transport
from steps.model.action import FileIs, Write
from steps.model.choice import Option
from steps.model.finding import Finding
from steps.model.hardware import Accelerator, Link, Network
from steps.model.machine import Machine
from steps.model.plan import Target
from steps.model.profile import NcclAnswers, Profile, answered
from steps.model.software import Told
from steps.text import Language, say, say_finding

CARD = Accelerator(vendor="nvidia", name="NVIDIA GeForce RTX 4090", chip="AD102", architecture="ada", pci_id="10de:2684")
LAB = Machine(
    accelerators=(CARD, CARD),
    networks=(
        Network(name="lo", kind="loopback", up=True, addresses=("127.0.0.1/8",)),
        Network(name="docker0", kind="virtual", up=True, addresses=("172.17.0.1/16",)),
        Network(name="eno1np0", kind="ethernet", driver="bnxt_en", up=True, speed_mbps=25_000, addresses=("10.0.0.5/24",)),
        Network(name="eno2np1", kind="ethernet", driver="bnxt_en", up=False),
        Network(name="enp5s0", kind="ethernet", driver="igb", up=True, speed_mbps=1000, addresses=("192.168.1.7/24",)),
        Network(name="bond0", kind="virtual", up=True, addresses=("10.1.0.5/24",)),
    ),
)


def asked(**answers: object) -> Profile:
    return Profile(nccl=msgspec.convert(answers, NcclAnswers))


def text(machine: Machine = LAB, **answers: object) -> str | None:
    return nccl_conf.conf_text(machine, asked(**answers))


def found(machine: Machine = LAB, **answers: object) -> dict[str, Finding]:
    return {one.code: one for one in nccl.check(machine, asked(**answers))}


def test_the_file_has_plain_lines_and_nothing_else() -> None:
    written = text(interface="eno1np0", infiniband="off", p2p="off", gdr="off", debug="WARN", extra={"NCCL_NVLS_ENABLE": "0"})
    assert written == (
        "NCCL_SOCKET_IFNAME=eno1np0\nNCCL_IB_DISABLE=1\nNCCL_P2P_DISABLE=1\nNCCL_NET_GDR_LEVEL=LOC\nNCCL_DEBUG=WARN\nNCCL_NVLS_ENABLE=0\n"
    )


def test_no_file_is_written_when_nothing_is_asked_for() -> None:
    assert text() is None
    assert text(interface="auto", infiniband="auto", p2p="auto", gdr="auto") is None
    assert "nccl-interface-missing" not in found(interface="auto")
    assert nccl.actions(LAB, Profile(), Target()) == ()


def test_the_one_action_writes_exactly_the_file_that_was_shown() -> None:
    (action,) = nccl.actions(LAB, asked(interface="eno1np0", debug="WARN"), Target())
    assert isinstance(action, Write)
    assert (action.id, action.path, action.text, action.mode) == (
        "nccl.conf",
        "/etc/nccl.conf",
        "NCCL_SOCKET_IFNAME=eno1np0\nNCCL_DEBUG=WARN\n",
        0o644,
    )
    assert action.done_when == (FileIs(path=action.path, text=action.text),)


def test_a_name_that_begins_another_is_written_exactly() -> None:
    both = Machine(networks=(Network(name="eth1", kind="ethernet", up=True), Network(name="eth10", kind="ethernet", up=True)))
    assert text(both, interface="eth1") == "NCCL_SOCKET_IFNAME==eth1\n"
    assert text(both, interface="eth10") == "NCCL_SOCKET_IFNAME=eth10\n"


def test_what_a_person_wrote_under_extra_goes_first_and_stands_once() -> None:
    assert text(debug="WARN", extra={"NCCL_DEBUG": "VERSION"}) == "NCCL_DEBUG=VERSION\n"


def test_nccl_is_left_to_choose_where_it_would_take_no_interface_that_leads_nowhere() -> None:
    assert [option.value for option in options(LAB) if option.recommended] == ["auto"]


VIRBR0 = Network(name="virbr0", kind="virtual", up=True, addresses=("192.168.122.1/24",))


def with_networks(*more: Network) -> Machine:
    return msgspec.structs.replace(LAB, networks=(*LAB.networks, *more))


def test_the_fastest_real_card_is_recommended_where_nccl_would_take_a_virtual_one_too() -> None:
    bridged = with_networks(VIRBR0)
    best = interfaces.best_interface(bridged)
    assert best is not None
    assert best.name == "eno1np0"
    chosen = [option for option in options(bridged) if option.recommended]
    assert [option.value for option in chosen] == ["eno1np0"]
    assert "virbr0" in say("en", chosen[0].sentences[0])


def test_the_bridge_of_virtual_machines_counts_until_the_nccl_that_runs_is_known_to_leave_it_alone() -> None:
    bridged = with_networks(VIRBR0)
    assert [one.name for one in interfaces.misleading(bridged)] == ["virbr0"]
    assert [one.name for one in interfaces.misleading(bridged, "2.18.1")] == ["virbr0"]
    assert interfaces.misleading(bridged, "2.30.7") == ()
    planned = answered(Profile(), {"frameworks.torch": "2.15.0", "frameworks.variant": "cu130"})
    assert [option.value for option in options(bridged, planned) if option.recommended] == ["auto"]
    older = answered(Profile(), {"frameworks.torch": "2.1.0", "frameworks.variant": "cu121"})
    assert [option.value for option in options(bridged, older) if option.recommended] == ["eno1np0"]


IDLE = Network(name="br-0123456789ab", kind="virtual", up=False, addresses=("172.20.0.1/16",))


def test_a_bridge_without_a_cable_leads_older_releases_astray_and_newer_ones_not() -> None:
    idle = with_networks(IDLE)
    assert [one.name for one in interfaces.misleading(idle, "2.27.7")] == ["br-0123456789ab"]
    assert interfaces.misleading(idle, "2.28.3") == ()
    assert interfaces.misleading(with_networks(msgspec.structs.replace(IDLE, addresses=())), "2.27.7") == ()


def test_where_one_is_called_like_infiniband_nccl_takes_no_other_and_no_bridge_misleads_it() -> None:
    ib0 = Network(name="ib0", kind="infiniband", up=True, speed_mbps=200_000, addresses=("10.9.0.1/24",))
    both = with_networks(VIRBR0, ib0)
    assert [one.name for one in interfaces.picked(both)] == ["ib0"]
    assert interfaces.misleading(both) == ()
    assert [option.value for option in options(both) if option.recommended] == ["auto"]


def test_infiniband_with_a_link_local_address_only_keeps_nccl_from_the_card_that_has_a_network() -> None:
    ib0 = Network(name="ib0", kind="infiniband", up=True, speed_mbps=200_000, addresses=("fe80::b80f:e9ff:fe0b:4fc1/64",))
    lone = with_networks(ib0)
    assert [one.name for one in interfaces.misleading(lone, "2.32.3")] == ["ib0"]
    chosen = next(option for option in options(lone) if option.recommended)
    assert chosen.value == "eno1np0"
    assert say("en", chosen.sentences[0]) == (
        "The fastest card with an address of a network. Left alone, NCCL would take ib0, with a link-local one."
    )
    automatic = next(option for option in options(lone) if option.value == "auto")
    assert "has a link-local address only" in say("en", automatic.sentences[0])


@pytest.mark.parametrize(("value", "names"), [("eno1np0, enp5s0", ["eno1np0"]), ("=enp5s0:4000,lo", ["lo", "enp5s0"]), ("^lo", [])])
def test_a_value_names_what_nccl_takes_from_it_blanks_and_ports_as_it_does(value: str, names: list[str]) -> None:
    assert [one.name for one in interfaces.matching(LAB, value)] == names


def test_a_name_of_one_letter_is_written_exactly_for_alone_it_counts_as_none() -> None:
    assert text(Machine(networks=(Network(name="x", kind="ethernet", up=True),)), interface="x") == "NCCL_SOCKET_IFNAME==x\n"


@pytest.mark.parametrize(
    "name",
    [
        "NCCL_MIN_NCHANNELS",
        "NCCL_DEBUG_TIMESTAMP_FORMAT",
        "NCCL_CTA_POLICY",
        "NCCL_NETDEVS_POLICY",
        "NCCL_COLLNET_NODE_THRESHOLD",
        "NCCL_OOB_NET_IFNAME",
        "NCCL_LAUNCH_MODE",
        "NCCL_P2P_PXN_LEVEL",
        "NCCL_SOCKET_SNDBUF",
    ],
)
def test_a_variable_that_an_nccl_reads_is_not_called_unknown(name: str) -> None:
    assert "nccl-unknown-variable" not in found(extra={name: "1"})


def test_what_is_offered_for_a_variable_is_read_by_every_release_that_knows_it() -> None:
    known = stack.nccl_variables()
    # The policies have names since 2.29 only: 2.27 takes EFFICIENCY for 0.
    assert (known["NCCL_CTA_POLICY"].since, known["NCCL_CTA_POLICY"].plain) == ("2.27", ("0", "1", "2"))
    # Before 2.32 this level means silence.
    assert "ATTN" not in known["NCCL_DEBUG"].plain
    assert known["NCCL_PXN_C2C"].default == "1 (since 2.28; 0 in 2.27)"


def test_of_a_name_that_the_tables_lack_nothing_but_that_is_said() -> None:
    finding = found(extra={"NCCL_SOCKET_IFNAMES": "eth0"})["nccl-unknown-variable"]
    assert say_finding("en", finding, "sentence") == "NCCL_SOCKET_IFNAMES is not in our tables of NCCL's variables."
    assert finding.source is not None


BONDED = msgspec.structs.replace(
    LAB,
    networks=(
        Network(name="lo", kind="loopback", up=True, addresses=("127.0.0.1/8",)),
        Network(name="bond0", kind="virtual", up=True, speed_mbps=50_000, addresses=("10.1.0.5/24",), carriers=("ens1f0", "ens1f1")),
        Network(name="ens1f0", kind="ethernet", up=True, speed_mbps=25_000, master="bond0"),
        Network(name="ens1f1", kind="ethernet", up=True, speed_mbps=25_000, master="bond0"),
        Network(name="ens2", kind="ethernet", up=True, speed_mbps=200_000),
        Network(name="ens3", kind="ethernet", up=True, speed_mbps=100_000, addresses=("fe80::3eec:efff:fe12:3456/64",)),
        Network(name="eno1", kind="ethernet", up=True, speed_mbps=1_000, addresses=("192.168.1.5/24",)),
        Network(name="tun0", kind="virtual", up=True, addresses=("10.8.0.2/24",)),
    ),
)


def test_a_bond_over_cards_is_recommended_and_neither_its_members_nor_a_port_without_an_address() -> None:
    best = interfaces.best_interface(BONDED)
    assert best is not None
    assert best.name == "bond0"
    assert [option.value for option in options(BONDED) if option.recommended] == ["bond0"]
    said = {option.value: (option.mark, say("en", option.tag), [one.code for one in option.findings]) for option in options(BONDED)}
    assert said["bond0"] == ("good", "up", [])
    assert said["eno1"] == ("good", "up", [])
    assert said["ens1f0"] == ("bad", "no address", ["nccl-interface-without-address"])
    assert said["ens2"] == ("bad", "no address", ["nccl-interface-without-address"])
    member = next(option for option in options(BONDED) if option.value == "ens1f0")
    assert "A part of bond0" in say("en", member.sentences[0])


def test_a_bridge_over_cards_is_no_network_of_containers_whatever_it_is_called() -> None:
    bridge = Network(name="br-lan", kind="virtual", up=True, addresses=("10.2.0.5/24",), carriers=("eno1",))
    assert interfaces.reason_against(bridge) is None
    assert interfaces.reason_against(msgspec.structs.replace(bridge, name="br-0123456789ab", carriers=())) == "containers"


def test_a_bridge_of_open_vswitch_is_not_taken_for_dockers_for_it_may_carry_the_machines_own_network() -> None:
    exterior = Network(name="br-ex", kind="virtual", up=True, addresses=("10.2.0.5/24",))
    card = Network(name="eno1", kind="ethernet", up=True, speed_mbps=25_000, master="ovs-system")
    machine = msgspec.structs.replace(LAB, networks=(exterior, card))
    said = {option.value: (option.mark, [one.code for one in option.findings]) for option in options(machine)}
    assert said["br-ex"] == ("catch", [])
    assert interfaces.misleading(machine) == ()


def test_a_bmcs_usb_network_leads_nccl_astray_where_another_card_has_a_network() -> None:
    bmc = Network(name="usb0", kind="ethernet", driver="cdc_ether", up=True, addresses=("169.254.3.1/24",))
    assert [one.name for one in interfaces.misleading(with_networks(bmc), "2.32.3")] == ["usb0"]
    assert interfaces.misleading(Machine(networks=(bmc,))) == ()


def test_without_any_address_known_the_fastest_card_that_is_up_is_taken() -> None:
    silent = Machine(networks=(Network(name="a0", kind="ethernet", up=True, speed_mbps=1000), Network(name="b0", kind="ethernet", up=True)))
    best = interfaces.best_interface(silent)
    assert best is not None
    assert best.name == "a0"


def test_an_interface_without_an_address_is_an_error_where_it_is_asked_for() -> None:
    finding = found(BONDED, interface="ens1f1")["nccl-interface-without-address"]
    assert (finding.severity, finding.fix) == ("error", {"nccl.interface": "bond0"})
    assert "bond0 (50 Gb/s)" in say_finding("en", finding, "remedy")


def test_a_card_that_is_written_down_comes_with_the_warning_that_its_name_may_change() -> None:
    first = options(LAB)[0]
    assert any(note.label == "trap" and "another name" in say("en", note.text) for note in first.notes)


def test_one_gpu_leaves_the_interface_to_nccl() -> None:
    one = msgspec.structs.replace(LAB, accelerators=(CARD,))
    assert [option.value for option in options(one) if option.recommended] == ["auto"]


def options(machine: Machine, profile: Profile | None = None) -> tuple[Option, ...]:
    return nccl.choices(machine, profile or Profile())[0].options


def test_virtual_loopback_and_down_are_shown_with_their_reason_and_cannot_be_taken() -> None:
    said = {option.value: (option.mark, say("en", option.tag), [one.code for one in option.findings]) for option in options(LAB)}
    assert said["eno1np0"] == ("good", "up", [])
    assert said["auto"] == ("good", "works", [])
    assert said["lo"] == ("bad", "no network", ["nccl-interface-virtual"])
    assert said["docker0"] == ("bad", "virtual", ["nccl-interface-virtual"])
    assert said["eno2np1"] == ("bad", "down", ["nccl-interface-down"])
    assert said["bond0"] == ("catch", "not sure", [])


def test_an_option_shows_the_file_it_leads_to() -> None:
    option = next(one for one in options(LAB, asked(debug="WARN")) if one.value == "eno1np0")
    assert [note.text for note in option.notes if note.label == "file"] == [
        "/etc/nccl.conf",
        "NCCL_SOCKET_IFNAME=eno1np0",
        "NCCL_DEBUG=WARN",
    ]
    assert answered(asked(debug="WARN"), option.patch) == asked(debug="WARN", interface="eno1np0")


@pytest.mark.parametrize(
    ("code", "severity", "has", "nearly"),
    [
        ("nccl-interface-missing", "error", {"interface": "eth0"}, {"interface": "eno1"}),
        ("nccl-interface-virtual", "error", {"interface": "docker0"}, {"interface": "bond0"}),
        ("nccl-interface-virtual", "error", {"interface": "lo"}, {"interface": "enp5s0"}),
        ("nccl-interface-down", "error", {"interface": "eno2np1"}, {"interface": "eno"}),
        ("nccl-subnets-differ", "warning", {"interface": "eno1np0,enp5s0"}, {"interface": "eno1np0"}),
        ("nccl-debug-noisy", "warning", {"debug": "INFO"}, {"debug": "WARN"}),
        ("nccl-debug-noisy", "warning", {"extra": {"NCCL_DEBUG": "trace"}}, {"extra": {"NCCL_DEBUG": "version"}}),
        ("nccl-unknown-variable", "warning", {"extra": {"NCCL_SOCKET_IFNAMES": "eth0"}}, {"extra": {"NCCL_ALGO": "Ring"}}),
        ("nccl-inline-comment", "error", {"extra": {"NCCL_ALGO": "Ring # fast"}}, {"extra": {"NCCL_ALGO": "Ring"}}),
        ("nccl-inline-comment", "error", {"extra": {"NCCL_ALGO": "Ring\nNCCL_X=1"}}, {"extra": {"NCCL_ALGO": "^Ring"}}),
    ],
)
def test_a_finding_is_said_of_the_answer_that_has_it(code: str, severity: str, has: dict[str, object], nearly: dict[str, object]) -> None:
    assert found(LAB, **has)[code].severity == severity
    assert code not in found(LAB, **nearly)


def test_a_machine_whose_interfaces_are_not_known_is_not_judged() -> None:
    assert found(Machine(accelerators=(CARD,)), interface="eth0", infiniband="auto", gdr="auto") == {}


def test_no_infiniband_is_a_remark_for_several_gpus_and_not_said_of_a_card_that_may_have_roce() -> None:
    plain = msgspec.structs.replace(LAB, networks=tuple(msgspec.structs.replace(one, driver="igb") for one in LAB.networks))
    assert found(plain)["nccl-no-infiniband"].severity == "info"
    assert "nccl-no-infiniband" not in found(plain, infiniband="off")
    assert "nccl-no-infiniband" not in found(LAB)
    assert "nccl-no-infiniband" not in found(msgspec.structs.replace(plain, accelerators=(CARD,)))


@pytest.mark.parametrize(
    ("name", "chip", "architecture", "way"),
    [
        ("NVIDIA GeForce RTX 3090", "GA102", "ampere", "memory"),
        ("NVIDIA GeForce RTX 2080 Ti", "TU102", "turing", "memory"),
        ("NVIDIA GeForce GTX 1080 Ti", "GP102", "pascal", "pcie"),
        ("NVIDIA RTX A6000", "GA102", "ampere", "pcie"),
    ],
)
def test_geforce_cards_since_turing_copy_through_memory_unless_nvlink_joins_them(name: str, chip: str, architecture: str, way: str) -> None:
    card = Accelerator(vendor="nvidia", name=name, chip=chip, architecture=architecture)
    apart = Machine(accelerators=(card, card), links=(Link(a=0, b=1, kind="PIX"),), told=Told(nvlink=True))
    assert [one.way for one in transport.pairs(apart)] == [way]
    joined = msgspec.structs.replace(apart, links=(Link(a=0, b=1, kind="NV4"),))
    assert [one.way for one in transport.pairs(joined)] == ["nvlink"]


def test_geforce_cards_without_p2p_are_told_so_and_cards_with_it_are_not() -> None:
    assert found()["nccl-p2p-unsupported"].severity == "info"
    workstation = msgspec.structs.replace(CARD, name="NVIDIA RTX 6000 Ada Generation")
    assert "nccl-p2p-unsupported" not in found(msgspec.structs.replace(LAB, accelerators=(workstation, workstation)))
    mixed = msgspec.structs.replace(LAB, accelerators=(CARD, workstation))
    assert "nccl-p2p-unsupported" not in found(mixed)
    joined = msgspec.structs.replace(LAB, links=(Link(a=0, b=1, kind="NV4"),))
    assert "nccl-p2p-unsupported" not in found(joined)


@pytest.mark.parametrize(
    "answers",
    [
        {"interface": "eth0"},
        {"interface": "docker0"},
        {"interface": "eno2np1"},
        {"interface": "eno1np0,enp5s0"},
        {"debug": "INFO"},
        {"extra": {"NCCL_DEBUG": "INFO"}},
        {"extra": {"NCCL_NOT": "1", "NCCL_ALGO": "Ring"}},
        {"extra": {"NCCL_ALGO": "Ring # x"}},
    ],
)
def test_the_offered_fix_removes_what_it_is_offered_for(answers: dict[str, object]) -> None:
    for one in nccl.check(LAB, asked(**answers)):
        if one.fix is not None:
            assert one.code not in {left.code for left in nccl.check(LAB, answered(asked(**answers), one.fix))}


def test_the_transport_rows_turn_off_and_on_again() -> None:
    for row, key in (("p2p", "p2p"), ("infiniband", "infiniband"), ("gdr", "gdr")):
        option = next(one for one in nccl.choices(LAB, Profile())[1].options if one.value == row)
        off = answered(Profile(), option.patch)
        assert getattr(off.nccl, key) == "off"
        option = next(one for one in nccl.choices(LAB, off)[1].options if one.value == row)
        assert (say("en", option.tag), answered(off, option.patch)) == ("turned off", Profile())


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_all_words_are_there(language: Language) -> None:
    profile = asked(interface="docker0", extra={"NCCL_DEBUG": "INFO", "NCCL_NOT": "1 # x"}, gdr="auto", infiniband="auto")
    for one in nccl.check(LAB, profile):
        assert "{" not in say_finding(language, one, "sentence") + say_finding(language, one, "remedy")
        assert say_finding(language, one, "tag") != one.code
    for choice in nccl.choices(LAB, profile):
        for option in choice.options:
            for words in (option.label, option.tag, *option.sentences, *(note.text for note in option.notes)):
                assert not say(language, words).startswith("nccl.")


def test_the_step_is_for_machines_with_an_nvidia_gpu() -> None:
    assert nccl.applies(LAB)
    assert not nccl.applies(Machine())
    assert not nccl.applies(Machine(accelerators=(Accelerator(vendor="amd", architecture="cdna3"),)))
