"""Every cause has a repair and a proof, in the tools and words of the machine's own distribution."""

from __future__ import annotations

import json
import re

import pytest

from steps.catalog.diagnoses import diagnoses
from steps.catalog.repairs import System, repair_rows
from steps.doctor.diagnosis import Repair
from steps.doctor.evidence import Evidence
from steps.doctor.repairs.all import repair_of, repairers
from steps.doctor.rules.base import Candidate
from steps.host.captured import Capture, CapturedHost, Recorded
from steps.model.action import Manual, Packages, Run, Service, Write
from steps.text import lookup, say
from tests.doctor import kit

SICK = tuple(id for id, row in diagnoses().items() if row.severity != "not-a-fault")
_LISTS = {
    "apt": (
        "ubuntu",
        "dpkg -l",
        "ii  nvidia-driver-570 570.1-0ubuntu1 amd64 x\nii  nvidia-dkms-570 570.1-0ubuntu1 amd64 x\n",
    ),
    "dnf": ("fedora", "rpm -qa", "akmod-nvidia-570.1-1.fc41.x86_64\nxorg-x11-drv-nvidia-570.1-1.fc41.x86_64\n"),
    "pacman": ("arch", "pacman -Q", "nvidia 570.1-1\nnvidia-utils 570.1-1\n"),
}
_THEIRS = {
    "apt": {"apt", "apt-get", "apt-mark", "apt-cache", "apt-config", "dpkg", "dpkg-query", "update-initramfs", "ufw", "prime-select"},
    "dnf": {"dnf", "rpm", "dracut", "akmods", "firewall-cmd", "setsebool"},
    "pacman": {"pacman", "mkinitcpio"},
}
_EVERYWHERE = {"setsebool", "prime-select"}
"""Tools of one family whose diagnosis can only be made where they are."""


def machine(manager: System) -> Evidence:
    """Return a machine of a distribution of which little is known."""
    name, listing, rows = _LISTS[manager]
    files = {"/etc/os-release": f'ID={name}\nVERSION_ID="24.04"\n', "/proc/sys/kernel/osrelease": "6.8.0-60-generic\n"}
    commands = {
        listing: Recorded(stdout=rows, status=0),
        "dkms status": Recorded(stdout="nvidia/570.1, 6.8.0-59-generic, x86_64: installed\n", status=0),
    }
    return Evidence(CapturedHost(Capture(schema="bringup/capture", version=1, files=dict(files), commands=commands), "capture.json"))


def repaired(seen: Evidence, id: str, variant: str = "", **params: str) -> Repair:
    return repair_of(seen, diagnoses()[id], Candidate(strength=0.9, params=dict(params), variant=variant))


def all_of(manager: System) -> list[tuple[str, Repair]]:
    """Return the repair of every cause in every variant on a machine of this distribution."""
    seen = machine(manager)
    variants = [(id, "") for id in SICK] + [key for key in repair_rows() if key[1]]
    told = {
        "package": "nvidia-utils-550", "kernel": "6.8.0-60-generic", "library": "libnccl2", "wanted": "2.2-1+cuda12.8", "driver": "nouveau",
        "branch": "470", "newest": "12", "module": "nvidia", "version": "550.1", "address": "10.0.0.2", "pid": "77",
        "holder": "apt", "on": "/home", "torch": "12.8", "url": "https://example.org/", "theirs": "ubuntu2204", "path": "/",
        "least": "2.27", "what": "torch",
    }  # fmt: skip
    return [(id, repaired(seen, id, variant, **told)) for id, variant in variants]


@pytest.mark.parametrize("manager", ["apt", "dnf", "pacman"])
def test_every_fault_has_a_step_and_a_proof(manager: System) -> None:
    assert [id for id, repair in all_of(manager) if not repair.steps or repair.verify is None] == []


def test_persistence_is_turned_on_in_a_unit_that_leaves_it_off_and_else_by_enabling_the_unit() -> None:
    (ubuntu,) = repaired(machine("apt"), "persistence-off-slow-gpu-init").steps
    (file,) = (action for action in ubuntu.actions if isinstance(action, Write))
    assert "--persistence-mode" in (file.text or "")
    assert ubuntu.undo is not None
    (fedora,) = repaired(machine("dnf"), "persistence-off-slow-gpu-init").steps
    assert [type(action) for action in fedora.actions] == [Service]


@pytest.mark.parametrize(("version", "name"), [("570.124.06", "nvidia-fabric-manager"), ("580.95.05", "nvidia-fabricmanager")])
def test_the_fabric_manager_is_asked_for_by_the_name_that_it_has_in_nvidias_dnf_repository(version: str, name: str) -> None:
    files = {"/etc/os-release": "ID=rocky\nID_LIKE=rhel\n", "/sys/module/nvidia/version": f"{version}\n"}
    commands = {"rpm -qa": Recorded(stdout=f"nvidia-driver-{version}-1.el9.x86_64\n", status=0)}
    seen = Evidence(CapturedHost(Capture(schema="bringup/capture", version=1, files=dict(files), commands=commands), "capture.json"))
    step = repaired(seen, "fabricmanager-not-running").steps[0]
    (action,) = step.actions
    assert isinstance(action, Packages)
    assert (action.manager, action.install) == ("dnf", (f"{name}={version}",))


def test_no_row_is_hidden_by_a_builder() -> None:
    assert {id for id, _ in repair_rows()} & set(repairers()) == set()
    assert {id for id, _ in repair_rows()} | set(repairers()) <= set(diagnoses())


@pytest.mark.parametrize("manager", ["apt", "dnf", "pacman"])
def test_no_command_is_of_another_distribution(manager: System) -> None:
    strange = {name for other, names in _THEIRS.items() if other != manager for name in names} - _THEIRS[manager] - _EVERYWHERE
    apt_only = {id for id, row in diagnoses().items() if row.category in ("apt-state", "ssh-installer") or id.startswith("driver-package")}
    wrong = [
        (id, argv[0])
        for id, repair in all_of(manager)
        if id not in apt_only
        for argv in (*(step.command for step in repair.steps if step.command), *((repair.verify.command,) if repair.verify else ()))
        if argv[0] in strange
    ]
    assert wrong == []


@pytest.mark.parametrize("manager", ["apt", "dnf", "pacman"])
def test_all_of_it_can_be_said_in_both_languages(manager: System) -> None:
    for _, repair in all_of(manager):
        for step in repair.steps:
            assert lookup("en", step.says.key) is not None, step.says.key
            for text in (say("en", step.says), say("zh_CN", step.says)):
                assert text
                assert not re.search(r"\{\w+\}", text), text
            assert step.undo is None or "{" not in say("zh_CN", step.undo)
        assert repair.verify is None or say("zh_CN", repair.verify.expect) != repair.verify.expect.key


def test_no_step_goes_through_a_shell_or_takes_a_strangers_words() -> None:
    seen = machine("apt")
    evil = "x; rm -rf / #"
    names = ("package", "kernel", "library", "wanted", "driver", "branch", "newest", "module", "version", "address", "pid", "on", "url")
    for id in SICK:
        repair = repaired(seen, id, **dict.fromkeys(names, evil))
        for action in (action for step in repair.steps for action in step.actions):
            match action:
                case Run(argv=argv):
                    assert argv[0] not in ("sh", "bash", "env"), id
                    assert not any(evil in word for word in argv), (id, argv)
                case Packages(install=install):
                    assert not any(evil in word for word in install), (id, install)
                case Write(text=text):
                    assert evil not in (text or ""), id
                case _:
                    assert not isinstance(action, Manual)


def test_what_a_step_changes_on_disk_can_be_taken_back() -> None:
    # Rebuilding what is derived (an initramfs, an index), and finishing what is broken, has no way back and needs none.
    derived = {
        "initramfs", "ldconfig", "fix-broken", "finish", "reinstall", "headers-again", "build-akmod", "build-all", "clean-cache",
        "old-kernels", "other-branch-away", "build", "refresh", "check-packages",
    }  # fmt: skip
    seen = machine("apt")
    lasting = [
        (id, step.says.key)
        for id in SICK
        for step in repaired(seen, id, package="nvidia-utils-550", kernel="6.8.0-60-generic", module="nvidia", version="550.1").steps
        if step.actions and not step.live and step.undo is None and step.says.key.rpartition(".")[2] not in derived
    ]
    assert lasting == []


# --- decisions ------------------------------------------------------------------------------------


def steps_of(verdict_files: dict[str, str], commands: dict[str, str], id: str) -> list[str]:
    """Return the steps for the cause of a made-up machine, which has to be `id`."""
    cause = kit.judged(files=verdict_files, commands=commands).cause
    assert cause is not None
    assert cause.id == id
    return [step.says.key.rpartition(".")[2] for step in cause.repair.steps]


_PENDING = {
    "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri\n",
    "/etc/os-release": "ID=ubuntu\nVERSION_ID=24.04\n",
}
_NEW = {
    "modinfo nvidia": "filename: /lib/modules/6.8/updates/dkms/nvidia.ko\nversion:        550.120\n",
    "nvidia-smi": "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.120\n",
}


@pytest.mark.parametrize(
    ("modules", "step"),
    [
        ("nvidia_uvm 1 0 - Live 0x0\nnvidia 1 1 nvidia_uvm, Live 0x0\n", "reload"),
        ("nvidia_uvm 1 2 - Live 0x0\nnvidia 1 9 nvidia_uvm, Live 0x0\n", "reboot"),
        ("nvidia_drm 1 0 - Live 0x0\nnvidia 1 2 nvidia_drm,strange, Live 0x0\n", "reboot"),
        ("", "reboot"),
    ],
)
def test_a_new_module_is_loaded_without_a_reboot_only_where_nobody_uses_the_old_one(modules: str, step: str) -> None:
    files = {**_PENDING, **({"/proc/modules": modules} if modules else {})}
    assert steps_of(files, _NEW, "reboot-pending-after-driver-update") == [step]


def test_a_stale_module_is_taken_out_before_the_new_one_is_built() -> None:
    commands = {
        **_NEW,
        "modinfo nvidia": "filename: /lib/modules/6.8/updates/dkms/nvidia.ko\nversion:        550.90.07\n",
        "uname -r": "6.8.0-60-generic",
        "dkms status": "nvidia/550.90.07, 6.8.0-60-generic, x86_64: installed\nnvidia/550.120: added\n",
        "dpkg -l": "ii  nvidia-dkms-550 550.120-0ubuntu1 amd64 x\nii  nvidia-utils-550 550.120-0ubuntu1 amd64 x\n",
    }
    assert steps_of(_PENDING, commands, "stale-module-on-disk") == ["old-module-away", "build", "initramfs", "reboot"]


def first_packages(listed: str, id: str) -> Packages:
    """Return the first step for a cause where dpkg lists these packages, which has to be one of packages."""
    capture = Capture(
        schema="bringup/capture",
        version=1,
        files={"/etc/os-release": "ID=ubuntu\nVERSION_ID=24.04\n"},
        commands={"dpkg -l": Recorded(stdout=listed, status=0)},
    )
    first = repaired(Evidence(CapturedHost(capture, "c")), id).steps[0].actions[0]
    assert isinstance(first, Packages)
    return first


@pytest.mark.parametrize(
    ("packages", "wanted"),
    [
        ("ii  nvidia-driver-570 570.1-0ubuntu1 amd64 x\n", ("nvidia-driver-570-open",)),
        ("ii  nvidia-headless-570 570.1-0ubuntu1 amd64 x\n", ("nvidia-headless-570-open",)),
        (
            "ii  cuda-drivers 570.1-1 amd64 x\nii  nvidia-kernel-dkms 570.1-1 amd64 x\n",
            ("nvidia-open=570.1-1", "nvidia-kernel-open-dkms=570.1-1"),
        ),
    ],
)
def test_the_other_kind_of_modules_comes_with_the_same_branch_or_version(packages: str, wanted: tuple[str, ...]) -> None:
    first = first_packages(packages, "gpu-needs-open-module")
    assert first.install == wanted
    assert len(first.may_remove) == packages.count("\n")


@pytest.mark.parametrize(
    ("packages", "wanted"),
    [
        (
            "ii  nvidia-driver-570 570.86-0ubuntu1 amd64 x\nii  libnvidia-compute-570 570.124-0ubuntu1 amd64 x\n",
            ("nvidia-driver-570=570.124-0ubuntu1",),
        ),
        (
            "ii  cuda-drivers-550 550.54.14-1 amd64 x\nii  nvidia-utils-550 550.90.07-0ubuntu1 amd64 x\n",
            ("cuda-drivers-550=550.90.07-1",),
        ),
        (
            (
                "ii  nvidia-driver-bin 570.124.06-1 amd64 x\nii  nvidia-driver-libs 580.82.07-1 amd64 x\n"
                "ii  nvidia-driver-libs:i386 570.124.06-1 i386 x\n"
            ),
            ("nvidia-driver-bin=580.82.07-1", "nvidia-driver-libs:i386=580.82.07-1"),
        ),
    ],
)
def test_every_part_of_the_driver_that_lags_is_brought_to_the_version_of_the_rest(packages: str, wanted: tuple[str, ...]) -> None:
    first = first_packages(packages, "partial-driver-upgrade")
    assert first.install == wanted


def test_the_tools_are_those_of_the_branch_that_is_installed_whatever_an_earlier_one_left_behind() -> None:
    packages = "ii  libnvidia-compute-570 570.124-0ubuntu1 amd64 x\nrc  nvidia-utils-535 535.183-0ubuntu1 amd64 x\n"
    assert first_packages(packages, "driver-utilities-package-missing").install == ("nvidia-utils-570=570.124-0ubuntu1",)


def test_the_contract_has_every_field_of_a_repair() -> None:
    from steps import medical

    verdict = kit.judged(files=_PENDING, commands=_NEW)
    told = json.loads(json.dumps(medical.document(verdict, "en")))["diagnoses"][0]
    assert told["fix"] == [{"step": "Reboot", "command": ["systemctl", "reboot"], "reboot": True, "undo": None}]
    assert told["verify"] == {"command": ["nvidia-smi"], "expect": "lists every GPU"}
