"""Repairs of the system use its own manager, ask nothing, and touch no other machine."""

from __future__ import annotations

import pytest

from steps.catalog.diagnoses import diagnoses
from steps.doctor.diagnosis import Diagnosis, Repair
from steps.doctor.evidence import Evidence
from steps.doctor.repairs.all import repair_of
from steps.doctor.rules.base import Candidate
from steps.host.captured import Capture, CapturedHost, Recorded
from steps.model.action import Command, Packages, Run, Write
from tests.doctor import kit
from tests.doctor.test_repairs import machine

_UBUNTU = {"/etc/os-release": 'ID=ubuntu\nVERSION_ID="24.04"\n', "/proc/sys/kernel/osrelease": "6.8.0-60-generic\n"}


def seen(commands: dict[str, str], files: dict[str, str] | None = None) -> Evidence:
    """Return a machine with these answers of commands and files, an Ubuntu where nothing else is told."""
    told = {name: Recorded(stdout=text, status=0) for name, text in commands.items()}
    return Evidence(CapturedHost(Capture(schema="bringup/capture", version=1, files=dict(files or _UBUNTU), commands=told), "capture.json"))


def repaired(on: Evidence, id: str, variant: str = "", **params: str) -> Repair:
    return repair_of(on, diagnoses()[id], Candidate(strength=0.9, params=dict(params), variant=variant))


def keys(repair: Repair) -> list[str]:
    return [step.says.key.rpartition(".")[2] for step in repair.steps]


def cause_of(logs: dict[str, str], commands: dict[str, str]) -> Diagnosis:
    cause = kit.judged(files=_UBUNTU, logs=logs, commands=commands).cause
    assert cause is not None
    return cause


# --- maintainer scripts ask nothing -----------------------------------------------------------------


@pytest.mark.parametrize("id", ["dpkg-interrupted", "disk-full-during-install", "two-repos-same-branch", "held-package-blocks-install"])
def test_what_runs_maintainer_scripts_asks_nothing(id: str) -> None:
    found = [
        action
        for step in repaired(machine("apt"), id, library="libnccl2", wanted="2.2-1").steps
        for action in step.actions
        if isinstance(action, Run) and action.argv[0] in ("apt-get", "dpkg")
    ]
    assert found
    for action in found:
        assert action.env["DEBIAN_FRONTEND"] == "noninteractive"
        assert action.env["NEEDRESTART_SUSPEND"] == "1"
        calls = [action.argv, *(step.argv for step in action.undo if isinstance(step, Command))]
        for argv in calls:
            changes = argv[0] == "apt-get" and "clean" not in argv
            assert not changes or "Dpkg::Options::=--force-confold" in argv, argv


# --- room on /boot ----------------------------------------------------------------------------------

_KERNELS = "".join(
    f"ii  linux-{part}-6.8.0-{number}-generic 6.8.0-{number}.1 amd64 x\n"
    for number in (40, 50, 58, 60)
    for part in ("headers", "image", "modules", "modules-extra")
)
_OLD = {f"linux-{part}-6.8.0-{number}-generic" for number in (40, 50) for part in ("headers", "image", "modules", "modules-extra")}


def test_an_old_kernel_goes_with_all_its_packages_and_comes_back() -> None:
    repair = repaired(seen({"dpkg -l": _KERNELS}), "boot-partition-full")
    (action,) = repair.steps[0].actions
    assert isinstance(action, Packages)
    assert {name.removesuffix("-") for name in action.install} == _OLD == set(action.may_remove)
    assert keys(repair)[-1] == "check-packages"


def test_beside_a_half_configured_package_nothing_is_forced() -> None:
    half = "iF  linux-image-6.8.0-61-generic 6.8.0-61.1 amd64 x\n"
    repair = repaired(seen({"dpkg -l": _KERNELS + half}), "boot-partition-full")
    (action,) = next(step for step in repair.steps if step.says.key.endswith("old-kernels")).actions
    assert isinstance(action, Run)
    assert action.argv[:2] == ("dpkg", "--purge")
    assert set(action.argv[2:]) == _OLD


# --- containers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "listing", "path"),
    [
        ('ID=ubuntu\nVERSION_ID="24.04"\n', {"dpkg -l": "ii  docker-ce 5 amd64 x\n"}, "/etc/apt/sources.list.d/"),
        ('ID=rocky\nID_LIKE="rhel fedora"\nVERSION_ID="9.4"\n', {"rpm -qa": "docker-ce-27-1.el9.x86_64\n"}, "/etc/yum.repos.d/"),
    ],
)
def test_the_toolkits_repository_comes_before_the_toolkit(release: str, listing: dict[str, str], path: str) -> None:
    repair = repaired(seen({"uname -m": "x86_64\n", **listing}, {"/etc/os-release": release}), "docker-daemon-lacks-nvidia-runtime")
    assert keys(repair) == ["toolkit-repository", "install-toolkit", "docker-runtime", "restart-docker"]
    actions = repair.steps[0].actions
    places = [action.path if isinstance(action, Write) else " ".join(action.argv) for action in actions if isinstance(action, Write | Run)]
    assert any(path in place for place in places), places


def test_a_repository_that_is_there_is_not_added_again() -> None:
    line = "deb [signed-by=/k.gpg] https://nvidia.github.io/libnvidia-container/stable/deb/amd64 /\n"
    files = {**_UBUNTU, "/etc/apt/sources.list.d/nvidia-container-toolkit.list": line}
    repair = repaired(seen({"dpkg -l": "ii  docker-ce 5 amd64 x\n"}, files), "docker-daemon-lacks-nvidia-runtime")
    assert keys(repair)[0] == "install-toolkit"


# --- the network ------------------------------------------------------------------------------------


def test_an_address_of_a_log_gets_no_rule_here() -> None:
    cause = cause_of({"python.log": "NCCL WARN socketPollConnect: Connect to 8.8.8.8<12345> failed : No route to host\n"}, {})
    assert cause.id == "firewall-blocks-nccl"
    assert not cause.repair.runs
    assert keys(cause.repair) == ["see-way", "let-in-there"]


# --- another driver has the card --------------------------------------------------------------------

_NOUVEAU = (
    "01:00.0 VGA compatible controller [0300]: NVIDIA Corporation GA102 [GeForce RTX 3090] [10de:2204] (rev a1)\n"
    "\tKernel driver in use: nouveau\n\tKernel modules: nouveau\n"
)


@pytest.mark.parametrize(
    ("packages", "steps"),
    [
        ("ii  nvidia-utils-570 570.1-0ubuntu1 amd64 x\n", ["install-driver"]),
        ("ii  nvidia-utils-570 570.1-1 amd64 x\nii  nvidia-dkms-570 570.1-1 amd64 x\n", ["blacklist", "initramfs", "reboot"]),
    ],
)
def test_nouveau_is_kept_out_only_where_a_module_follows_it(packages: str, steps: list[str]) -> None:
    cause = cause_of({}, {"lspci -nnk -d 10de:": _NOUVEAU, "dpkg -l": packages, "nvidia-smi": "NVIDIA-SMI has failed because\n"})
    assert cause.id == "in-tree-driver-owns-gpu"
    assert keys(cause.repair) == steps
