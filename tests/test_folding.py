"""What a verb says ends its rows between words, and stays what it is where it is to be copied."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.ui.screen import Terminal
from tui.folding import folded

CAPTURE = Path(__file__).parent / "machines" / "rtx4090x4-epyc.json"


def test_prose_goes_on_as_far_in_as_it_began() -> None:
    assert folded("  The versions on disk fit each other, and the desktop may go too.", 40) == [
        "  The versions on disk fit each other,",
        "  and the desktop may go too.",
    ]


def test_a_line_of_columns_goes_on_below_its_last_column() -> None:
    assert folded("warning  memory-small   24 GB of memory, the guide wants 128 GB.", 48) == [
        "warning  memory-small   24 GB of memory, the",
        "                        guide wants 128 GB.",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "     $ modprobe -r nvidia_uvm nvidia_drm nvidia_modeset nvidia nvidia_peermem",
        "  # apt-get install --no-remove nvidia-driver-580-open linux-headers-generic",
        "source: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/index.html",
        "  node-1$ MASTER_ADDR=10.0.0.1 torchrun --nnodes 2 --node-rank 0 ddp_amp.py",
        "Try it:  $ torchrun --standalone --nproc-per-node 4 ~/envs/dl/samples/ddp_amp.py",
        "short",
        "",
    ],
)
def test_commands_and_words_longer_than_a_row_are_left_to_the_terminal(line: str) -> None:
    assert folded(line, 48) == [line]


def test_no_line_of_a_script_is_broken() -> None:
    script = "  $ sh -c 'set -e\nprintf %s, the rest of a long line of a script, as it is >> /etc/a-file\n'"
    assert folded(script, 48) == script.split("\n")


def test_a_command_before_its_words_stays_whole_and_they_go_below_it() -> None:
    command = "python -c 'import torch; print(torch.version.cuda)'"
    assert folded(f"  {command}   prints the CUDA version", 60) == [f"  {command}", "      prints the CUDA version"]


def test_chinese_breaks_anywhere_and_latin_words_in_it_stay_whole() -> None:
    assert folded("内存 24 GB，指南要求 128 GB。大数据集和权重卸载会先耗尽内存，随后是 bitsandbytes。", 40) == [
        "内存 24 GB，指南要求 128 GB。大数据集和",
        "权重卸载会先耗尽内存，随后是",
        "bitsandbytes。",
    ]


def test_the_report_stays_markdown_on_a_terminal(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "BRINGUP_STATE": str(tmp_path), "LANG": "C.UTF-8", "TERM": "xterm", "PATH": "/usr/bin:/bin"}
    argv = (sys.executable, "-I", "-B", "-m", "tui", "report", "--offline", "--lang", "en", "--machine", str(CAPTURE))
    with Terminal(argv, environ, rows=60) as terminal:
        terminal.ended()
        printed = terminal.raw.decode().splitlines()
    rows = [line for line in printed if "storage-no-data-tier" in line]
    assert [(row[0], row[-1], len(row) > 80) for row in rows] == [("|", "|", True)]


def test_findings_on_a_terminal_of_80_columns_break_no_word(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "BRINGUP_STATE": str(tmp_path), "LANG": "C.UTF-8", "TERM": "xterm", "PATH": "/usr/bin:/bin"}
    argv = (sys.executable, "-I", "-B", "-m", "tui", "check", "--offline", "--lang", "en", "--machine", str(CAPTURE))
    with Terminal(argv, environ, rows=60) as terminal:
        terminal.ended()
        shown = terminal.text()
    assert "warning  storage-no-data-tier        2.8 TB of SSD space for data, the guide\n" in shown
    assert f"\n{' ' * 37}wants 4 TB. Larger data sets have to be\n" in shown
