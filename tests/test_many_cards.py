"""A capture with thousands of cards is made up; it must cost what its size says and no more."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

from steps import planning
from steps.detect.machine import detect
from steps.host.captured import CapturedHost, load_capture
from steps.model.profile import Profile
from tests.test_command import GPU_BOX

LSPCI = "lspci -D -nn -vv"


def with_cards(count: int, folder: Path) -> CapturedHost:
    """Return the recorded box with so many of its cards."""
    capture: dict[str, Any] = json.loads(GPU_BOX.read_text(encoding="utf-8"))
    listing = capture["commands"][LSPCI]
    text = listing["stdout"] if isinstance(listing, dict) else listing
    entries = re.split(r"\n(?=[0-9a-f]{4}:)", text)
    card = next(entry for entry in entries if "NVIDIA" in entry and "VGA" in entry)
    many = [re.sub(r"^\S+", f"{1 + at // 7936:04x}:{at // 31 % 256:02x}:{at % 31 + 1:02x}.0", card) for at in range(count)]
    text = "\n".join([*(entry for entry in entries if "NVIDIA" not in entry), *many])
    kept = {name: said for name, said in capture["commands"].items() if not name.startswith("nvidia-smi")}
    capture["commands"] = {**kept, LSPCI: {**listing, "stdout": text} if isinstance(listing, dict) else text}
    for kind in ("files", "links"):
        capture[kind] = {path: value for path, value in capture[kind].items() if "/sys/devices/pci" not in path and "/bus/pci" not in path}
    file = folder / f"{count}.json"
    file.write_text(json.dumps(capture), encoding="utf-8")
    return CapturedHost(load_capture(str(file)), str(file))


def test_eight_thousand_cards_are_detected_and_judged_in_seconds(tmp_path: Path) -> None:
    begin = time.process_time()
    machine = detect(with_cards(8192, tmp_path))
    assert len(machine.accelerators) == 8192
    assert planning.findings(machine, Profile())
    assert time.process_time() - begin < 40, "it took minutes while pairs of cards were compared"


def test_pairs_are_worked_out_up_to_what_a_machine_can_hold(tmp_path: Path) -> None:
    assert detect(with_cards(129, tmp_path)).links == ()
