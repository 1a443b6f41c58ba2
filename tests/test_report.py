"""The report: nothing in it names anybody, it is well-formed, and a hostile name stays a name."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec
import pytest

from steps.detect import topology
from steps.detect.machine import detect
from steps.headless.console import Asked, Console
from steps.headless.report import report as verb
from steps.host.opening import open_host
from steps.model.finding import Finding
from steps.model.hardware import Accelerator, Bridge, Network, PcieLink
from steps.model.machine import Machine
from steps.model.run import ActionState, RunState
from steps.model.verdict import Rung
from steps.report import drawing
from steps.report.block import Picture, Table
from steps.report.content import Told, ToldRun, plain
from steps.report.content import report as written
from steps.report.html import html
from steps.report.markdown import markdown
from steps.text import Language

MACHINES = sorted((Path(__file__).resolve().parent / "machines").glob("*.json"))
HTML = "{http://www.w3.org/1999/xhtml}"
LANGUAGES: tuple[Language, ...] = ("en", "zh_CN")
HOSTILE = "RTX <script>alert('x')</script> | `rm` & \"q\" ]]> \x1b[31m\x00\u202e"
LINK = PcieLink(generation=1, max_generation=4, width=1, max_width=16)
CARD = Accelerator(vendor="nvidia", address="0000:0a:00.0", pci_id="10de:2786", name=HOSTILE, pcie=LINK, architecture="ada")
SECRETS = {
    "host": "kestrel-lab7",
    "user": "ottilie",
    "board": "BSN0815X4711",
    "dimm": "80CE0123AB",
    "mac": "3c:ec:ef:12:ab:cd",
    "address": "10.77.3.21",
    "uuid": "4c4c4544-0035-5910-8052-b9c04f4e3732",
    "token": "hunter2hunter2",
}


def unchanged(text: str) -> str:
    return text


def texts(element: ET.Element) -> str:
    return "".join(element.itertext())


def told(machine: Machine, **more: object) -> Told:
    return msgspec.structs.replace(Told(machine=machine, findings=(), version="1", made="2026-11-30"), **more)


def test_a_log_does_not_end_in_a_document_for_programs() -> None:
    document = '{"schema":"bringup/verify","version":1,"rungs":[' + '{"id":"numpy"},' * 300 + "]}"
    run = ToldRun(
        id="1130-a",
        state=RunState(status="done"),
        titles=(),
        verdict=(Rung(id="numpy", state="passed", value=0.1234567891, unit="loss"),),
        log_of="verify",
        log=f"works  NumPy\n{document}\nProven: 1 passed.\n",
    )
    text = markdown(written(told(Machine(), run=run), "en", unchanged))
    assert "works  NumPy\nProven: 1 passed." in text
    assert "bringup/verify" not in text
    assert "verify.rung" not in text
    assert "0.123 loss" in text


def planted(folder: Path) -> Path:
    """Return a capture with names, serial numbers, addresses and a token in everything that a report could quote."""
    base = json.loads((MACHINES[0].parent / "rtx4070x3-riser-x1.json").read_text(encoding="utf-8"))
    base["about"]["name"] = SECRETS["host"]
    base["files"]["/etc/passwd"] = f"root:x:0:0::/root:/bin/sh\n{SECRETS['user']}:x:1000:1000:O,,,:/home/{SECRETS['user']}:/bin/bash\n"
    base["files"]["/sys/class/dmi/id/board_serial"] = SECRETS["board"] + "\n"
    base["files"]["/sys/class/dmi/id/bios_version"] = f"2.M1 {SECRETS['board']} {SECRETS['uuid']}\n"
    base["files"]["/sys/class/dmi/id/board_name"] = f"B550M {SECRETS['mac']} of {SECRETS['host']}\n"
    base["commands"]["dmidecode -t memory"] = {"stdout": f"\tSerial Number: {SECRETS['dimm']}\n", "stderr": "", "status": 0}
    address = [{"ifname": "enp42s0", "addr_info": [{"family": "inet", "local": SECRETS["address"], "prefixlen": 24}]}]
    base["commands"]["ip -j addr"] = {"stdout": json.dumps(address), "stderr": "", "status": 0}
    path = folder / "planted.json"
    path.write_text(json.dumps(base), encoding="utf-8")
    return path


def run_of(log: str) -> ToldRun:
    state = RunState(
        status="failed",
        actions={"driver.install": ActionState(id="driver.install", status="failed", started=1.0, ended=8.0, error=f"{SECRETS['user']}")},
    )
    rungs = (Rung(id="torch", state="failed", detail="2.15.0", because=f"/home/{SECRETS['user']}/envs/dl"),)
    return ToldRun(id="1130-a", state=state, titles=(("driver.install", "x"),), verdict=rungs, log_of="driver.install", log=log)


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BRINGUP_STATE", str(tmp_path / "state"))
    return tmp_path


def printed(machine: Path, *, json_wanted: bool = False, language: Language = "en") -> str:
    lines: list[str] = []
    console = Console(Asked(machine=str(machine), json=json_wanted, language=language), lines.append, lines.append)
    assert verb(console, {}, None) == 0
    return "\n".join(lines)


@pytest.mark.parametrize("json_wanted", [False, True])
def test_what_was_planted_on_the_machine_is_in_no_report(at_home: Path, json_wanted: bool) -> None:
    text = printed(planted(at_home), json_wanted=json_wanted)
    assert {name for name, value in SECRETS.items() if value.lower() in text.lower()} == set()
    assert "B550M 02:00:" in text.replace("\\", "")


def test_the_log_and_the_verdict_of_the_last_run_are_redacted_too(at_home: Path) -> None:
    from steps.host.redact import Redaction

    host = open_host(str(planted(at_home)), None)
    log = "\n".join(f"{name}: {value} token={SECRETS['token']}" for name, value in SECRETS.items() if name != "token")
    clean = Redaction(host, (log, host.run(("dmidecode", "-t", "memory")).stdout, host.run(("ip", "-j", "addr")).stdout)).text
    made = written(told(detect(host), run=run_of(log)), "en", clean)
    for text in (html(made), markdown(made)):
        assert {name for name, value in SECRETS.items() if value.lower() in text.lower()} == set()
        assert "REDACTED" in text
        assert "/home/user/envs/dl" in text


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("capture", MACHINES, ids=lambda path: path.stem)
def test_every_machine_has_a_well_formed_report_that_loads_nothing(capture: Path, language: Language) -> None:
    machine = detect(open_host(str(capture), None))
    page = html(written(told(machine), language, unchanged))
    root = ET.fromstring(page)  # noqa: S314 - our own file
    assert {"script", "link", "img", "iframe", "object"} & {element.tag.removeprefix(HTML) for element in root.iter()} == set()
    assert re.findall(r"(?:src|href)\s*=|url\(|@import", page) == []
    assert "report." not in texts(root).replace("bringup report", "")
    for card in machine.accelerators:
        assert (card.address or "") in texts(root)


def test_a_hostile_name_stays_a_name_in_both_files() -> None:
    machine = Machine(
        accelerators=(CARD, CARD, msgspec.structs.replace(CARD, integrated=True)),
        networks=(Network(name="<b>\x07|x", kind="ethernet", device="0000:01:00.0"),),
    )
    finding = Finding(
        code="gpu-memory-small", severity="warning", step="hardware", subject=HOSTILE, params={"gpu": HOSTILE, "size": "1", "minimum": "2"}
    )
    made = written(told(machine, findings=(finding,), run=run_of("```\n" + HOSTILE)), "en", unchanged)
    page, lines = html(made), markdown(made)
    root = ET.fromstring(page)  # noqa: S314 - our own file
    assert "script" not in {element.tag.removeprefix(HTML) for element in root.iter()}
    assert "<script>alert('x')</script>" in texts(root)
    assert "\x1b" not in page
    assert "\u202e" not in page
    outside = re.sub(r"(?ms)^(`{3,})text$.*?^\1$", "", lines)
    assert "<" not in outside
    rows = [line for line in outside.splitlines() if "alert" in line]
    assert rows
    assert all(len(re.findall(r"(?<!\\)\|", row)) in (0, 3, 5) for row in rows)


def test_a_log_cannot_close_its_own_fence() -> None:
    made = written(told(Machine(), run=run_of("````\n# not a heading\n````")), "en", unchanged)
    assert "\n`````text\n````\n# not a heading\n````\n`````\n" in markdown(made)


def test_of_a_log_only_the_end_is_kept_without_what_a_terminal_obeys() -> None:
    log = "".join(f"line {number}\n" for number in range(100)) + "10%\r50%\r100%\n\x1b[1mdone\x1b[0m"
    kept = plain(log).split("\n")
    assert (len(kept), kept[0], kept[-2:]) == (60, "line 42", ["100%", "done"])


def test_a_card_behind_a_shared_bridge_hangs_from_it_and_a_narrow_one_says_so() -> None:
    above = ("0000:00:01.0", "0000:02:00.2")
    cards = (
        Accelerator(vendor="nvidia", address="0000:0a:00.0", bridges=(*above, "0000:03:00.0"), pcie=LINK),
        Accelerator(
            vendor="nvidia",
            address="0000:0b:00.0",
            bridges=(*above, "0000:03:01.0"),
            pcie=PcieLink(max_generation=4, width=16, max_width=16),
        ),
        Accelerator(vendor="nvidia", address="0000:41:00.0", bridges=("0000:40:01.0",), numa_node=-1),
    )
    bridges = (Bridge(address="0000:02:00.2", link=PcieLink(max_generation=3, width=4, max_width=4)),)
    assert topology.tree(Machine(accelerators=cards, bridges=bridges)) == (
        "CPU",
        "├─ 02:00.2  PCIe bridge  Gen3 ×4",
        "│  ├─ 0a:00  GPU 0  Gen4 ×1/16  !",
        "│  └─ 0b:00  GPU 1  Gen4 ×16",
        "└─ 41:00  GPU 2",
    )


def test_the_picture_has_a_box_for_every_line_of_the_tree_and_a_wire_for_all_but_the_roots() -> None:
    for capture in MACHINES:
        roots = topology.forest(detect(open_host(str(capture), None)))
        picture = drawing.svg(roots)
        lines = topology.drawn(roots, 200)
        if not lines:
            assert picture == ""
            continue
        svg = ET.fromstring(picture)  # noqa: S314 - our own drawing
        boxes = [element for element in svg if element.tag.endswith("rect")]
        wires = [element for element in svg if element.tag.endswith("path")]
        assert (len(boxes), len(wires)) == (len(lines), len(lines) - len(roots))


def test_the_words_of_the_run_are_in_the_report() -> None:
    made = written(told(Machine(), run=run_of("E: broken")), "zh_CN", unchanged)
    tables = [block for block in made.blocks if isinstance(block, Table)]
    assert any("2.15.0" in row for table in tables for row in table.rows)
    assert not any(isinstance(block, Picture) for block in made.blocks)


def test_html_and_markdown_are_written_side_by_side(at_home: Path) -> None:
    lines: list[str] = []
    console = Console(Asked(machine=str(MACHINES[0])), lines.append, lines.append)
    assert verb(console, {}, str(at_home / "for-you.html")) == 0
    assert sorted(path.name for path in at_home.iterdir()) == ["for-you.html", "for-you.md"]
    ET.parse(at_home / "for-you.html")  # noqa: S314 - our own file
    assert "for-you.md" in lines[-1]
