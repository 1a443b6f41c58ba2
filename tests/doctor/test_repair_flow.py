"""A repair as a plan: one line of actions, what the target cannot have left out, and a second look at the end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from steps.doctor.diagnosis import Diagnosis
from steps.doctor.repairs.flow import PROOF, repair_plan
from steps.model.action import Manual, Reboot, Run
from steps.model.plan import Target, decode, encode
from tests.doctor import kit
from tui.__main__ import _guarded

_STALE_LIST = "ii  nvidia-dkms-550 550.120-0ubuntu1 amd64 x\nii  nvidia-utils-550 550.120-0ubuntu1 amd64 x\n"


def stale() -> Diagnosis:
    """Return the diagnosis of a module that was not built anew."""
    cause = kit.judged(
        files={
            "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri\n",
            "/etc/os-release": "ID=ubuntu\nVERSION_ID=24.04\n",
        },
        commands={
            "modinfo nvidia": "filename: /lib/modules/6.8/updates/dkms/nvidia.ko\nversion:        550.90.07\n",
            "uname -r": "6.8.0-60-generic",
            "dkms status": "nvidia/550.90.07, 6.8.0-60-generic, x86_64: installed\nnvidia/550.120: added\n",
            "dpkg -l": _STALE_LIST,
        },
    ).cause
    assert cause is not None
    return cause


def test_every_action_rests_on_the_one_before_and_the_doctor_has_the_last_word() -> None:
    plan = repair_plan(stale(), Target(), made=1.0)
    ids = [action.id for action in plan.actions]
    assert ids == ["repair.old-module-away", "repair.build", "repair.initramfs", "repair.reboot", PROOF]
    assert [action.needs for action in plan.actions[1:4]] == [(one,) for one in ids[:3]]
    proof = plan.actions[-1]
    assert isinstance(proof, Run)
    assert proof.argv[-7:-4] == ("doctor", "--gone", "stale-module-on-disk")
    assert proof.argv[-4:] == ("--since", "1", "--proof", "modinfo -F version nvidia")
    assert proof.needs == tuple(ids[:-1])
    assert decode(encode(plan)) == plan


def test_a_mounted_system_neither_reboots_nor_asks() -> None:
    plan = repair_plan(stale(), Target(root="/mnt", machine="/m.json"), made=1.0)
    assert not any(isinstance(action, Reboot | Manual) for action in plan.actions)
    proof = plan.actions[-1]
    assert isinstance(proof, Run)
    assert proof.argv[-4:] == ("--machine", "/m.json", "--root", "/mnt")


def test_what_only_a_person_can_do_is_no_run() -> None:
    cause = kit.judged(logs={"dmesg": "NVRM: Xid (PCI:0000:01:00): 79, pid=1, GPU has fallen off the bus.\n"}).cause
    assert cause is not None
    assert cause.id == "gpu-fell-off-bus"
    assert not cause.repair.runs
    assert repair_plan(cause, Target(), made=1.0).actions == ()


def test_steps_of_a_person_between_others_become_questions_of_the_run() -> None:
    cause = kit.judged(
        logs={"dmesg": "NVRM: Xid (PCI:0000:01:00): 119, pid=1, Timeout after 6s of waiting for RPC response from GPU0 GSP!\n"}
    ).cause
    assert cause is not None
    plan = repair_plan(cause, Target(), made=1.0)
    assert [type(action) for action in plan.actions][:2] == [Manual, Run]


@pytest.mark.parametrize("name", ["stale-module-on-disk", "dpkg-interrupted", "cpu-only-build-active", "kernel-headers-missing"])
def test_the_second_look_ends_with_20_where_the_cause_is_there_or_nothing_is_proven(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capture = {
        "schema": "bringup/capture",
        "version": 1,
        "files": {"/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri\n"},
        "commands": {
            "modinfo nvidia": {"stdout": "version: 550.90.07\n", "stderr": "", "status": 0},
            "dpkg -l": {"stdout": _STALE_LIST, "stderr": "", "status": 0},
            "apt-get check": {"stdout": "Reading package lists...", "stderr": "", "status": 0},
        },
    }
    path = tmp_path / "m.json"
    path.write_text(json.dumps(capture))
    assert _guarded(["doctor", "--gone", name, "--machine", str(path)], {}) == (0 if name == "dpkg-interrupted" else 20)
    assert capsys.readouterr().out


def _nouveau(tmp_path: Path) -> Path:
    """Write a machine whose card nouveau drives though NVIDIA's module is there."""
    capture = {
        "schema": "bringup/capture",
        "version": 1,
        "files": {"/etc/os-release": 'ID=ubuntu\nVERSION_ID="24.04"\n', "/proc/sys/kernel/osrelease": "6.8.0-60-generic\n"},
        "commands": {
            "lspci -nnk -d 10de:": {
                "stdout": "01:00.0 VGA compatible controller [0300]: NVIDIA Corporation GA102 [GeForce RTX 3090] [10de:2204] (rev a1)\n"
                "\tKernel driver in use: nouveau\n\tKernel modules: nouveau, nvidia\n",
                "status": 0,
            },
            "dpkg -l": {"stdout": "ii  nvidia-dkms-570 570.1-0ubuntu1 amd64 x\n", "status": 0},
            "dkms status": {"stdout": "nvidia/570.1, 6.8.0-60-generic, x86_64: installed\n", "status": 0},
            "lsmod": {"stdout": "nouveau 3000000 1\n", "status": 0},
            "nvidia-smi": {"stdout": "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", "status": 9},
        },
    }
    path = tmp_path / "m.json"
    path.write_text(json.dumps(capture))
    return path


def test_a_repair_is_shown_with_its_commands_and_what_its_files_will_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(_nouveau(tmp_path))
    _guarded(["doctor", "--machine", path], {})
    told = capsys.readouterr().out
    for line in ("   > /etc/modprobe.d/bringup-blacklist.conf\n", "     blacklist nouveau\n", "   $ update-initramfs -u -k all\n"):
        assert line in told, told
    _guarded(["doctor", "--machine", path, "--json"], {})
    fix = next(one for one in json.loads(capsys.readouterr().out)["diagnoses"] if one["primary"])["fix"]
    assert [file["path"] for step in fix for file in step.get("writes", ())] == ["/etc/modprobe.d/bringup-blacklist.conf"]
    assert fix[1]["command"] == ["update-initramfs", "-u", "-k", "all"]


def test_a_repair_without_a_terminal_names_the_command_that_shows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _guarded(["doctor", "--fix", "--machine", str(_nouveau(tmp_path))], {}) == 2
    said = capsys.readouterr().err
    assert "doctor`" in said
    assert "plan`" not in said


def test_faults_are_not_followed_by_the_word_that_nothing_was_found() -> None:
    from steps import lines

    told = list(lines.plan(repair_plan(stale(), Target(), made=1.0), None, "en"))
    assert "No findings." not in told
    assert "No findings." in list(lines.plan(repair_plan(stale(), Target(), made=1.0), (), "en"))


def test_every_step_that_a_run_does_says_what_it_is() -> None:
    for step in stale().repair.steps:
        assert step.commands or step.files, step.says.key


def test_a_rehearsal_of_an_enrolment_needs_nobody_at_a_console(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    monkeypatch.setenv("BRINGUP_STATE", str(tmp_path))
    capture = Path(__file__).parents[1] / "machines" / "vm-a6000-3090-secureboot.json"
    argv = (sys.executable, "-m", "tui", "doctor", "--machine", str(capture), "--fix", "--yes")
    done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
    assert (done.returncode, "Hand the signing key to the firmware" in done.stdout) == (0, True)
