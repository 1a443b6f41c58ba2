"""The same machines as captures and as machines that are asked: the verdict rests on what is there, not on how it came here."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from steps.doctor.diagnosis import Verdict
from steps.doctor.evidence import Evidence
from steps.doctor.judge import judge
from steps.host.captured import Capture, CapturedHost, Recorded
from steps.host.local import LocalHost
from tests.doctor import kit, live
from tests.doctor.kit import Case

ONLY_RECORDED = {"143-gpu-absent-from-lspci"}
"""An empty list of NVIDIA's devices that a person recorded on purpose says that there should be one; one without a card has it too."""


@pytest.mark.parametrize("case", [case for case in kit.cases() if case.name not in ONLY_RECORDED], ids=lambda case: case.name)
def test_a_machine_that_is_asked_gets_the_verdict_of_its_recording(case: Case) -> None:
    said = live.verdict(case.capture)
    id = said.cause.id if said.cause else "none"
    assert id in (case.primary, *case.acceptable)
    assert said.healthy == kit.verdict(case.capture).healthy


def asked(log: str, /, files: dict[str, str] | None = None, **commands: tuple[str, str]) -> Verdict:
    """Return the verdict on a machine that answers these commands, of which a log tells."""
    answers = {line: Recorded(stdout=text, status=0) for line, text in commands.values()}
    host = live.AnsweringHost(Capture(schema="bringup/capture", version=1, files=dict(files or {}), commands=answers))
    seen = Evidence(host, (("log", (log.encode(),)),))
    try:
        return judge(seen)
    finally:
        seen.close()


def test_the_environment_of_a_machine_is_looked_at_where_a_program_sees_no_card() -> None:
    said = asked("RuntimeError: No CUDA GPUs are available\n", env=("env", "CUDA_VISIBLE_DEVICES=-1\n"))
    assert said.cause is not None
    assert said.cause.id == "cuda-visible-devices-hides-gpus"
    assert said.cause.evidence[1].source == "env"


def test_a_key_that_is_enrolled_already_is_not_enrolled_again() -> None:
    key = "/var/lib/dkms/mok.pub"
    log = "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service\n"
    state = ("mokutil --sb-state", "SecureBoot enabled\n")
    for word, id in (("is already enrolled", "mok-not-in-machine-keyring"), ("is not enrolled", "mok-not-enrolled")):
        said = asked(log, {key: "key"}, state=state, key=(f"mokutil --test-key {key}", f"{key} {word}\n"))
        assert said.cause is not None
        assert said.cause.id == id


def test_a_fabric_manager_that_runs_is_not_said_to_be_absent() -> None:
    log = "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized\n"
    said = asked(log, service=("systemctl is-active nvidia-fabricmanager", "active\n"))
    assert said.cause is not None
    assert said.cause.because.key.endswith("because-active")
    assert [step.command for step in said.cause.repair.steps] == [("systemctl", "restart", "nvidia-fabricmanager")]


def test_what_a_shell_would_fill_in_or_answer_is_answered_without_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("nvidia0", "nvidiactl"):
        (tmp_path / name).touch()
    host = LocalHost()
    assert host.run(("ls", f"{tmp_path}/nvidia*")).stdout.split() == [f"{tmp_path}/nvidia0", f"{tmp_path}/nvidiactl"]
    assert "No such file" in host.run(("ls", f"{tmp_path}/amd*")).stderr
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert "CUDA_VISIBLE_DEVICES=-1\n" in host.run(("env",)).stdout
    shell = subprocess.run(["/bin/bash", "-c", "ulimit -l"], capture_output=True, text=True, check=True)
    assert host.run(("ulimit", "-l")).stdout == shell.stdout


_SILENT = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
_LSPCI = (
    "01:00.0 VGA compatible controller [0300]: NVIDIA Corporation GA102 [GeForce RTX 3090] [10de:2204] (rev a1)\n"
    "\tSubsystem: Device [1458:403b]\n\tKernel driver in use: vfio-pci\n\tKernel modules: nvidiafb, nouveau\n"
)


@pytest.mark.parametrize("host", [live.AnsweringHost, CapturedHost])
@pytest.mark.parametrize("log", [_LSPCI, f"me@box:~$ lspci -nnk\n{_LSPCI}me@box:~$\n"], ids=("output", "session"))
def test_what_the_doctor_asked_for_is_an_answer_when_it_comes_as_a_log(host: type[CapturedHost], log: str) -> None:
    failed = {"nvidia-smi": Recorded(stdout=_SILENT, status=9), "nvidia-smi -q": Recorded(stdout=_SILENT, status=9)}
    said = []
    for logs in ((), (("log", (log.encode(),)),)):
        seen = Evidence(host(Capture(schema="bringup/capture", version=1, commands=failed)), logs)
        said.append(judge(seen))
        seen.close()
    before, after = said
    assert before.cause is not None
    assert not before.cause.known
    assert after.cause is not None
    assert (after.cause.id, after.cause.known) == ("vfio-owns-gpu", True)
    assert any(place.source.startswith("lspci") for place in after.cause.evidence)


def test_a_list_that_was_handed_over_is_not_asked_for_again() -> None:
    failed = {"nvidia-smi": Recorded(stdout=_SILENT, status=9), "nvidia-smi -q": Recorded(stdout=_SILENT, status=9)}
    asks, told = [], None
    for log in ("nothing\n", "nvidia/550.54.14, 6.8.0-31-generic, x86_64: installed\n"):
        seen = Evidence(live.AnsweringHost(Capture(schema="bringup/capture", version=1, commands=failed)), (("log", (log.encode(),)),))
        asks.append(judge(seen).asks)
        told = seen.modules.dkms
        seen.close()
    assert "dkms status" in asks[0]
    assert "dkms status" not in asks[1]
    assert [(one.module, one.version, one.kernel) for one in told or ()] == [("nvidia", "550.54.14", "6.8.0-31-generic")]
