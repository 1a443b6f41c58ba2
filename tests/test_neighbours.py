"""Before the driver is taken away everybody who uses the GPUs is named, and a person chooses."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from steps.detect.neighbours import neighbours
from steps.engine.command import unanswered
from steps.headless import neighbours as way
from steps.headless.console import Asked, Console
from steps.host.base import Result
from steps.host.local import USERS, LocalHost
from steps.text import say

TRAINING = {"pid": 71, "name": "python", "devices": ["/dev/nvidia0", "/dev/nvidia1"], "container": None}
BOXED = {"pid": 72, "name": "python3", "devices": ["/dev/nvidia2"], "container": "docker"}
SCREEN = {"pid": 73, "name": "Xorg", "devices": ["/dev/nvidia0"], "container": None}
OWN = {"pid": 74, "name": "nvidia-persiste", "devices": ["/dev/nvidia0"], "container": None}
FILES = {
    "/etc/passwd": "root:x:0:0::/root:/bin/sh\nwei:x:1001:1001::/home/wei:/bin/sh\n",
    "/proc/71/status": "Name:\tpython\nUid:\t1001\t1001\n",
}


class Node(LocalHost):
    """A machine with these users of its GPUs, one list for each look."""

    name = "gpu01.example"

    def __init__(self, *looks: list[dict[str, object]], partial: bool = False, answers: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.name = "gpu01.example"
        self.looks, self.partial, self.answers = list(looks), partial, answers or {}
        self.ran: list[str] = []

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0) -> Result:
        if argv == USERS:
            users = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
            return Result(stdout=json.dumps({"partial": self.partial, "users": users}), status=0)
        line = " ".join(argv)
        self.ran.append(line)
        said = next((said for start, said in self.answers.items() if line.startswith(start)), None)
        return Result(stdout=said, status=0) if said is not None else Result(status=4)

    def read(self, path: str) -> str | None:
        return FILES.get(path)


def test_processes_people_containers_screen_and_services_are_told_apart() -> None:
    found = neighbours(Node([TRAINING, BOXED, SCREEN, OWN]))
    assert [(one.kind, one.name, one.person, one.where, one.work) for one in found.found] == [
        ("process", "python", "wei", "GPU 0, 1", True),
        ("container", "python3", None, "docker", True),
        ("screen", "Xorg", None, "GPU 0", False),
        ("service", "nvidia-persiste", None, "GPU 0", False),
    ]


def test_jobs_of_slurm_and_services_that_hold_the_module_are_found() -> None:
    answers = {
        "systemctl is-active slurmd": "active\n",
        "squeue --noheader": "4711 wei train a big model\n",
        "systemctl is-active nvidia": "active\nactive\ninactive\ninactive\nactive\n",
    }
    node = Node([], answers=answers)
    found = [(one.kind, one.name, one.work) for one in neighbours(node).found]
    assert found == [
        ("job", "train a big model", True),
        ("service", "nvidia-persistenced", False),
        ("service", "nvidia-dcgm", False),
        ("screen", "display-manager", False),
    ]
    assert any(line.endswith("--nodelist=gpu01") for line in node.ran)


def went(node: Node, *answers: str) -> tuple[int, list[str], list[str]]:
    """Return the exit code, what was printed and what was asked."""
    out: list[str] = []
    asked: list[str] = []
    typed = iter(answers)

    def ask(question: str) -> str:
        asked.append(question)
        return next(typed)

    return way.make_way(Console(Asked(), out.append, out.append), ask, node), out, asked


def test_nobody_is_asked_where_nobody_s_work_would_end() -> None:
    code, out, asked = went(Node([SCREEN, OWN]))
    assert (code, asked) == (0, [])
    assert any("Xorg" in line for line in out)


@pytest.mark.parametrize(("answer", "code"), [("reboot", 0), ("stop", 12)])
def test_a_person_may_go_on_to_the_reboot_or_stop(answer: str, code: int) -> None:
    got, out, asked = went(Node([TRAINING]), "what?", answer)
    assert got == code
    assert len(asked) == 2
    assert "Process python (71) of wei uses GPU 0, 1." in out


@pytest.mark.parametrize("answer", ["wait", "notify"])
def test_waiting_ends_when_they_are_done_and_telling_reaches_everybody(answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The pause between two looks is real time.
    monkeypatch.setattr(way, "pause", lambda _: None)
    node = Node([TRAINING, BOXED], [TRAINING, BOXED], [BOXED], [])
    code, out, _ = went(node, answer)
    assert code == 0
    assert out[-1] == "Nobody's work on the GPUs would end."
    assert sum("python3" in line for line in out) == 2
    assert any(line.startswith("wall The GPU driver of gpu01.example") for line in node.ran) == (answer == "notify")


def test_what_cannot_be_seen_is_said() -> None:
    _, out, _ = went(Node([], partial=True))
    assert out[0] == "Processes of other people can be seen by root only."


def test_a_run_without_a_person_names_the_key_that_would_have_answered() -> None:
    assert 'prompts.neighbours = "wait" | "notify" | "reboot" | "stop"' in say("en", unanswered("neighbours"))
