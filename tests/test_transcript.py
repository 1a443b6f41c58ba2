"""Pasted sessions: which commands they show, and what those printed."""

from __future__ import annotations

import pytest

from steps.host.captured import Capture, CapturedHost, Recorded, typed
from steps.host.transcript import answered, session

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


PROMPTS = (
    "➜  ~ ", "➜  proj git:(main) ✗ ", "me@box ~> ", "me@box:~> ", "gpu01:~ # ", "~/w main* ❯ ", "╰─$ ", "└─$ ", "└──╼ $", "bash-5.1$ ",
    "sh-4.4# ", "box% ", "box ~ % ", "box:~ me$ ", "17:20:01 me@box:~$ ", "PS C:\\> ", "> ", "+ ", "$ ", "# ", "❯ ", "➜ ",
    "(base) me@box:~$ ",
)  # fmt: skip
NOUVEAU = "01:00.0 VGA compatible controller [0300]: NVIDIA Corporation X [10de:2684] (rev a1)\n\tKernel driver in use: nouveau\n"


@pytest.mark.parametrize("prompt", PROMPTS)
def test_prompts_of_many_shells_begin_a_command(prompt: str) -> None:
    told = session(f"{prompt}uname -r\n6.8.0-45-generic\n{prompt}lspci -nnk\n{NOUVEAU}{prompt}lsmod\n").commands
    assert dict(told) == {("uname", "-r"): "6.8.0-45-generic\n", ("lspci", "-nnk"): NOUVEAU}


@pytest.mark.parametrize(
    "line", ["> NVRM: Xid 79", "> docker: Error response", "12% done", "+ foo", "5 > 3", "<me@box.org> wrote", "/dev/sda1 a > b", "~ x > y"]
)
def test_marks_of_ordinary_lines_are_no_prompts(line: str) -> None:
    assert session(f"$ lsmod\nnvidia 1 0\n{line}\n").commands[("lsmod",)] == f"nvidia 1 0\n{line}\n"


@pytest.mark.parametrize(
    ("typed", "printed", "asked"),
    [
        ("ulimit -l", "64\n", ("ulimit", "-l")),
        ("groups", "me adm\n", ("groups",)),
        ("id", "uid=1000(me)\n", ("id",)),
        ("env | grep CUDA", "CUDA_HOME=/x\n", ("env",)),
        ("sudo -E /usr/bin/nvidia-smi -L", "GPU 0: X\n", ("nvidia-smi", "-L")),
        ("grep -r nvidia /etc/modprobe.d", "x:blacklist nvidia\n", ("grep", "-r", "nvidia", "/etc/modprobe.d")),
        ("ls /usr/bin/nvidia-uninstall", "/usr/bin/nvidia-uninstall\n", ("ls", "/usr/bin/nvidia-uninstall")),
        ("cat /etc/modprobe.d/*.conf", "blacklist nvidia\n", ("cat", "/etc/modprobe.d/*.conf")),
    ],
)  # fmt: skip
def test_answers_about_limits_groups_and_settings_are_taken(typed: str, printed: str, asked: tuple[str, ...]) -> None:
    assert dict(session(f"$ {typed}\n{printed}").commands) == {asked: printed}


def test_variables_limits_and_files_are_taken_in_the_form_in_which_they_are_looked_for() -> None:
    told = session("$ echo $CUDA_VISIBLE_DEVICES\n7\n$ printenv CUDA_HOME\n/x\n$ ulimit -a\nmax locked memory  (kbytes, -l) 64\n").commands
    assert dict(told) == {("env",): "CUDA_VISIBLE_DEVICES=7\nCUDA_HOME=/x\n", ("ulimit", "-l"): "64\n"}
    files = session("$ cat /etc/cdi/nvidia.yaml\nkind: x\n$ cat /etc/nothing\ncat: /etc/nothing: No such file or directory\n").files
    assert dict(files) == {"/etc/cdi/nvidia.yaml": "kind: x\n"}


def test_a_recorded_command_counts_however_it_was_run() -> None:
    said = Recorded(stdout="said\n")
    seen = CapturedHost(Capture(schema="bringup/capture", version=1, commands={"sudo lspci -nnk": said, "/usr/bin/nvidia-smi": said}))
    assert set(seen.recorded()) == {("lspci", "-nnk"), ("nvidia-smi",)}
    both = CapturedHost(Capture(schema="bringup/capture", version=1, commands={"sudo dmesg": said, "dmesg": Recorded(stdout="own\n")}))
    assert both.run(("dmesg",)).stdout == "own\n"


BUG_REPORT = """\
____________________________________________

*** /proc/driver/nvidia/./version
*** ls: -r--r--r-- 1 root root 0 2026-03-02 21:10:00.1 +0100 /proc/driver/nvidia/./version
NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build
____________________________________________

/usr/bin/lspci -d "10de:*" -v -xxx

01:00.0 3D controller: NVIDIA Corporation X

02:00.0 3D controller: NVIDIA Corporation X
____________________________________________

/bin/dmesg

[    0.000000] Linux version 6.14.0-33-generic
"""


def test_sections_of_nvidias_report_are_files_and_commands() -> None:
    told = session(BUG_REPORT)
    assert list(told.files) == ["/proc/driver/nvidia/version"]
    assert told.files["/proc/driver/nvidia/version"].endswith("580.95.05  Release Build\n")
    (argv,) = told.commands
    assert argv == ("lspci", "-d", "10de:*", "-v", "-xxx")
    assert told.commands[argv].count("3D controller") == 2


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("==============NVSMI LOG==============\n\nTimestamp : x\n", "nvidia-smi -q"),
        (f"Mon Nov  2 10:00:00 2026\n+{'-' * 60}+\n| NVIDIA-SMI 550.90.07   Driver Version: 550.90.07 |\n", "nvidia-smi"),
        ("\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV4\n", "nvidia-smi topo -m"),
        ("00:01.1 PCI bridge: AMD\n\tSubsystem: x\n\tCapabilities: [2a0 v1] A\n", "lspci -vvv"),
    ],
)
def test_the_output_of_one_command_is_known_by_itself(text: str, asked: str) -> None:
    argv = tuple(asked.split())
    assert dict(answered(text)) == {argv: text}
    assert host(**{"it.txt": text}).run(argv).stdout == text


def test_a_quoted_session_is_read_without_its_marks() -> None:
    assert dict(session("> me@box:~$ lsmod\n> nvidia 1 0\n>\n> $ vi x\n").commands) == {("lsmod",): "nvidia 1 0\n\n"}
