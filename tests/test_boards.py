"""Where a BIOS keeps its switches: the family that a machine's own names fit, and the paths of its platform."""

from __future__ import annotations

from pathlib import Path

import pytest

from steps import firmware, tuning
from steps.catalog import boards
from steps.detect.machine import detect
from steps.host.opening import open_host
from steps.model.hardware import Cpu, Firmware
from steps.model.machine import Machine
from steps.model.profile import Profile
from steps.model.software import Told
from steps.report.card import card
from steps.text import say
from tests.test_steps_guide import row

MACHINES = Path(__file__).parent / "machines"
XEON = "CPU Configuration > Advanced Power Management Configuration > CPU C State Control"
FAMILIES = boards.families()


def named(*names: str, cpu: str = "intel", portable: bool = False) -> Machine:
    """Return a machine that calls itself so, with its sleep not known: its row then says where the switch is."""
    return Machine(cpu=Cpu(vendor=cpu), firmware=Firmware(uefi=True), told=Told(names=names, portable=portable))


def paths(machine: Machine, item: str) -> list[str]:
    board, menus = firmware.paths(machine, item)
    return [say("en", firmware.where(board.vendor if board else "", menu)) for menu in menus]


@pytest.mark.parametrize(
    ("names", "portable", "expected"),
    [
        (("ASUSTeK COMPUTER INC.", "KRPG-D16 Series"), False, "ASUS servers"),
        (("ASUS", "ASUSTeK COMPUTER INC.", "ProArt X670E-CREATOR WIFI"), False, "ASUS boards"),
        (("Lambda", "ASUSTeK COMPUTER INC.", "Pro WS WRX80E-SAGE SE WIFI"), False, "ASUS boards"),
        (("ASUSTeK COMPUTER INC.", "ROG Zephyrus G16"), True, None),
        (("Micro-Star International Co., Ltd.", "MS-7C95"), False, "MSI boards"),
        (("Micro-Star International Co., Ltd.", "MS-17L5", "Katana 17 B13VGK"), True, None),
        (("Gigabyte Technology Co., Ltd.", "X570 AORUS MASTER"), False, "Gigabyte boards"),
        (("GIGABYTE", "MZ73-LM0-000"), False, "Gigabyte servers"),
        (("Giga Computing", "G493-ZB1-AAP1"), False, "Gigabyte servers"),
        (("ASRockRack", "ROMED8-2T"), False, "ASRock ASRock Rack"),
        (("ASRock", "X670E Taichi"), False, "ASRock boards"),
        (("Supermicro", "X13DGU"), False, "Supermicro boards"),
        (("Dell Inc.", "PowerEdge XE9680"), False, "Dell PowerEdge"),
        ((".ell Inc.", "Dell Inc.", "06JWJY", "Precision 5820 Tower"), False, "Dell Precision Tower"),
        (("Dell Inc.", "XPS 8950"), False, "Dell desktops"),
        (("Dell Inc.", "XPS 15 9530"), True, "Dell laptops"),
        (("HPE", "ProLiant DL380 Gen10"), False, "HPE ProLiant"),
        (("HP", "ProLiant DL380 Gen9"), False, "HPE ProLiant"),
        (("HP", "HP Z8 G4 Workstation"), False, "HP desktops"),
        (("HP", "OMEN by HP Obelisk Desktop 875-0xxx"), False, "HP desktops"),
        (("HP", "HP ZBook Fury 16"), True, "HP laptops"),
        (("Lenovo", "ThinkSystem SR675 V3 -[7D9QCTO1WW]-"), False, "Lenovo ThinkSystem"),
        (("LENOVO", "1046", "30E0003LUS", "ThinkStation P620"), False, "Lenovo ThinkStation"),
        (("LENOVO", "20YQ", "ThinkPad P15 Gen 2i"), True, "Lenovo ThinkPad"),
        (("LENOVO", "LNVNB161216", "82WK", "Legion Pro 5"), True, None),
        (("NVIDIA", "DGXA100"), False, None),
        (("HUANANZHI", "X99-F8"), False, None),
    ],
)
def test_a_machine_is_of_the_family_that_its_own_names_say(names: tuple[str, ...], portable: bool, expected: str | None) -> None:
    board, _ = firmware.paths(named(*names, portable=portable), "")
    assert (f"{board.vendor} {board.family}" if board else None) == expected


def test_every_path_belongs_to_a_family_has_a_source_and_an_item_of_the_checklist() -> None:
    items = set(firmware.ENTRIES)
    for board in FAMILIES:
        menus = {menu for item in items for menu in boards.menus(board, item, None)}
        assert board.source
        assert all(menu.source and set(menu.items) <= items for menu in menus)
        assert all(set(menu.families) <= {one.family for one in FAMILIES if one.vendor == menu.vendor} for menu in menus)


@pytest.mark.parametrize(
    ("cpu", "expected"),
    [
        (
            "intel",
            "Supermicro Intel Xeon: CPU Configuration > Advanced Power Management Configuration > CPU C State Control > CPU C6 report",
        ),
        ("amd", "Supermicro AMD EPYC: CPU Configuration > Global C-state control (by eye, wording may differ)"),
    ],
)
def test_the_platform_decides_which_path_is_shown(cpu: str, expected: str) -> None:
    assert paths(named("Supermicro", "X", cpu=cpu), "c-states") == [expected]


def test_a_processor_that_nobody_knows_gets_the_paths_of_both_the_vendors_own_word_first() -> None:
    found = paths(Machine(told=Told(names=("Supermicro",))), "c-states")
    assert [path.split(":")[0] for path in found] == ["Supermicro Intel Xeon", "Supermicro AMD EPYC"]


def test_a_server_of_a_vendor_is_not_sent_to_its_desktop_boards_menu() -> None:
    assert paths(named("GIGABYTE", "MZ73-LM0-000", cpu="amd"), "above-4g")[0].startswith("Gigabyte servers with AMD EPYC: Advanced >")
    assert paths(named("GIGABYTE", "X570 AORUS MASTER", cpu="amd"), "above-4g")[0].startswith("Gigabyte AORUS with AMD: Settings >")


def test_what_is_not_the_vendors_own_word_says_so_in_both_languages() -> None:
    board, (menu, *_) = firmware.paths(named("ASRock", "X670E Taichi", cpu="amd"), "above-4g")
    assert board is not None
    assert menu.by_eye
    assert say("en", firmware.where(board.vendor, menu)).endswith("(by eye, wording may differ)")
    assert say("zh_CN", firmware.where(board.vendor, menu)).endswith("（要用眼看，叫法可能不同）")


def test_a_laptop_is_not_sent_to_a_desktop_boards_menu() -> None:
    machine = detect(open_host(str(MACHINES / "laptop-katana-4070-secureboot.json"), None))
    assert machine.told.portable
    option = row(firmware.choices(machine, Profile())[0].options, "resizable-bar")
    notes = {note.label: say("en", note.text) for note in option.notes}
    assert "MSI" not in notes.get("bios", "")
    text = card(machine, Profile(), "en")
    assert "MSI:" not in text
    assert say("en", firmware.unlisted(machine, "c-states")).startswith("Laptops seldom have this switch")
    assert say("en", firmware.unlisted(machine, "secure-boot")).startswith("Look for Secure Boot")


def test_on_a_laptop_a_tick_that_keeps_the_processor_awake_names_the_battery() -> None:
    machine = detect(open_host(str(MACHINES / "laptop-katana-4070-secureboot.json"), None))
    asked = tuning.question(machine, Profile())
    assert asked is not None
    said = " ".join(say("en", sentence) for sentence in row(asked.options, "c-states").sentences)
    assert "battery" in said


def test_a_desktop_with_the_same_vendor_keeps_its_menu() -> None:
    machine = detect(open_host(str(MACHINES / "rtx4070x3-riser-x1.json"), None))
    assert not machine.told.portable
    assert paths(machine, "pcie-width") == [
        "MSI MEG B550 UNIFY-X: Settings > Advanced > PCI sub-system Settings > PCI_E1 Lanes Configuration"
    ]


def test_where_sleep_is_explained_the_source_of_its_figure_stands_too() -> None:
    options = firmware.choices(named("Supermicro", cpu="amd"), Profile())[0].options
    sources = [say("en", note.text) for note in row(options, "c-states").notes if note.label == "source"]
    assert any("intel_idle.c" in source for source in sources)
