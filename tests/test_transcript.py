"""Pasted sessions: which commands they show, and what those printed."""

from __future__ import annotations

import pytest

from steps.host.captured import Capture, CapturedHost, Recorded, typed
from steps.host.transcript import session

PASTED = """\
user@box:~$ uname -a
Linux box 6.8.0-45-generic #45-Ubuntu SMP x86_64 GNU/Linux
(base) user@box:~$ sudo lspci -nnk -d 10de: | grep -A2 3D
61:00.0 3D controller: NVIDIA Corporation GA102GL [A40] (rev a1)
        Kernel driver in use: vfio-pci
[root@box ~]# dpkg -l | grep nvidia
ii  nvidia-utils-550  550.90.07-0ubuntu0.24.04.1  amd64  NVIDIA utilities
$ cat /proc/driver/nvidia/version
NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 01:44:30 UTC 2024
$ vi notes.txt
nothing of a machine
"""


def host(**logs: str) -> CapturedHost:
    return CapturedHost(Capture(schema="bringup/capture", version=1, logs=logs, commands={"lsmod": Recorded(stdout="recorded\n")}))


def test_questions_that_tell_facts_are_taken_with_their_answers() -> None:
    told = session(PASTED)
    assert told.commands[("uname", "-a")] == "Linux box 6.8.0-45-generic #45-Ubuntu SMP x86_64 GNU/Linux\n"
    assert "vfio-pci" in told.commands[("lspci", "-nnk", "-d", "10de:")]
    assert told.commands[("dpkg", "-l")].startswith("ii  nvidia-utils-550")
    assert set(told.commands) == {("uname", "-a"), ("lspci", "-nnk", "-d", "10de:"), ("dpkg", "-l")}
    assert list(told.files) == ["/proc/driver/nvidia/version"]


def test_the_first_answer_counts_and_no_answer_is_none() -> None:
    told = session("$ lsmod\nnvidia 1 0\n$ lsmod\n$ df -h\n$ modinfo nvidia\n")
    assert dict(told.commands) == {("lsmod",): "nvidia 1 0\n"}


@pytest.mark.parametrize(
    "text", ["root@3f2a9c01b7de:/# nvidia-smi\nbash: nvidia-smi: command not found\n", "x" * (2 << 20), "# lsmod says\n"]
)
def test_containers_long_logs_and_remarks_are_no_session_of_this_machine(text: str) -> None:
    assert dict(session(text).commands) == {}


def test_a_capture_answers_from_its_logs_where_nothing_was_recorded() -> None:
    seen = host(**{"shell.log": "$ lsmod\nnvidia 1 0\n$ dkms status\nnvidia/550.90.07: added\n", "container-a.log": "$ df -h\n/ 1G\n"})
    assert seen.run(("lsmod",)).stdout == "recorded\n"
    assert seen.run(("dkms", "status")).stdout == "nvidia/550.90.07: added\n"
    assert typed(seen) == {("dkms", "status")}


def test_an_empty_answer_of_the_bus_counts_where_the_next_command_follows() -> None:
    asked = ("lspci", "-nn", "-d", "10de:")
    assert session("$ lspci | grep -i nvidia\n$ uname -r\n6.8.0-45-generic\n").commands[asked] == ""
    assert asked not in session("$ lspci | grep -i nvidia\n").commands
    assert asked not in session("$ lspci | grep -i audio\n$ uname -r\n6.8.0-45-generic\n").commands


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        ("apt list --installed | grep nvidia", ("apt", "list", "--installed")),
        ("sudo dnf list installed", ("dnf", "list", "installed")),
        ("pacman -Qs nvidia", ("pacman", "-Qs", "nvidia")),
    ],
)
def test_lists_of_packages_are_questions_that_tell_facts(typed: str, asked: tuple[str, ...]) -> None:
    assert session(f"$ {typed}\nnvidia-utils 550.90.07-1\n").commands[asked] == "nvidia-utils 550.90.07-1\n"
    assert not session("$ apt install nvidia-utils-550\nSetting up nvidia-utils-550\n").commands
