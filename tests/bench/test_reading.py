"""How fast the doctor reads a log in which nothing matches, against `grep -E` with the same patterns in the same round."""

from __future__ import annotations

import os
import random
import re
import resource
import shutil
import statistics
import subprocess
from pathlib import Path

import pytest

from steps.doctor.events.all import parsers, reader
from steps.doctor.events.base import literals_of
from steps.host.stream import blocks

pytestmark = [pytest.mark.bench, pytest.mark.skipif(shutil.which("grep") is None, reason="no grep")]

ROUNDS = 5
MOST = 4.5
"""Times what grep takes; 4 are wanted. With 800 literals 3.3 to 4.1 were measured on the same machine, one after the other."""
MOST_RESIDENT_MB = 64
WORDS = (
    "usb", "device", "new", "high-speed", "number", "using", "xhci_hcd", "systemd", "Started", "Session", "of", "user", "root", "audit",
    "res", "success", "eth0", "link", "becomes", "ready", "Adding", "swap", "kernel", "BIOS-e820", "mem", "pci", "resource",
    "bridge", "window", "conf_space", "enabled", "(level,", "low)", "IRQ", "ACPI", "PNP0A08", "thermal", "cpu", "MHz", "processor",
)  # fmt: skip


def log(path: Path, size: int) -> None:
    """Write a log of the kernel's shape, from a seed, in which no pattern matches."""
    chance = random.Random(20260731)
    with path.open("w", encoding="ascii") as file:
        written = 0
        while written < size:
            written += file.write(f"[{chance.random() * 1e5:12.6f}] {' '.join(chance.choices(WORDS, k=chance.randint(4, 16)))}\n")


def for_grep() -> str:
    """Return the patterns as grep writes them; of those that it cannot express, their literals."""
    lines = []
    for parser in parsers():
        pattern = re.sub(r"\(\?P<\w+>|\(\?:", "(", parser.pattern.pattern)
        for ours, theirs in ((r"\d", "[0-9]"), (r"\S", "[^[:space:]]"), (r"\s", "[[:space:]]"), (r"\w", "[[:alnum:]_]")):
            pattern = pattern.replace(ours, theirs)
        plain = not re.search(r"\(\?|[*+?}][?+]|\\[a-zA-Z]|\[[^]]*\[:", pattern)
        lines += [pattern] if plain else [re.escape(literal).replace("\\ ", " ") for literal in literals_of((parser,))]
    return "\n".join(lines)


def spent(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def by_grep(patterns: Path, path: Path) -> float:
    before = spent(resource.RUSAGE_CHILDREN)
    words = {**os.environ, "LC_ALL": "C.UTF-8"}
    done = subprocess.run(("grep", "-a", "-c", "-E", "-f", str(patterns), str(path)), env=words, capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return spent(resource.RUSAGE_CHILDREN) - before


def by_doctor(path: Path) -> float:
    reads = reader()
    before = spent(resource.RUSAGE_SELF)
    reads.read_blocks("log", blocks(str(path)))
    return spent(resource.RUSAGE_SELF) - before


@pytest.mark.parametrize("size", [24, pytest.param(200, marks=pytest.mark.long)])
def test_a_log_without_matches_is_read_nearly_as_fast_as_grep_does(size: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, patterns = tmp_path / "log", tmp_path / "patterns"
    log(path, size * 1_000_000)
    patterns.write_text(for_grep(), encoding="utf-8")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rounds = [(by_doctor(path), by_grep(patterns, path)) for _ in range(ROUNDS)]
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    ratio = statistics.median(ours / theirs for ours, theirs in rounds)
    ours, theirs = (size / min(times) for times in zip(*rounds, strict=True))
    with capsys.disabled():
        print(f"\nreading {size} MB: {ours:.0f} MB/s, grep -E {theirs:.0f} MB/s, x{ratio:.2f}; {grown} MB more resident")
    assert ratio <= MOST
    assert grown <= MOST_RESIDENT_MB
