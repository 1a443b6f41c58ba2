"""Repairs name what is on the machine: its modules, its kernel, its branch, and the packages of whoever built them."""

from __future__ import annotations

import pytest

from steps.catalog.diagnoses import diagnoses
from steps.doctor.diagnosis import Repair
from steps.doctor.evidence import Evidence
from steps.doctor.repairs.all import repair_of
from steps.doctor.repairs.modules import images
from steps.doctor.rules.base import Candidate
from steps.host.captured import Capture, CapturedHost, Recorded
from steps.model.action import Write
from tests.doctor.live import AnsweringHost

_UBUNTU = {"/etc/os-release": 'ID=ubuntu\nVERSION_ID="24.04"\n', "/proc/sys/kernel/osrelease": "6.8.0-60-generic\n"}


def repair(id: str, files: dict[str, str], commands: dict[str, str], **params: str) -> Repair:
    """Return the repair on a made-up machine, on which all commands are said to have ended well."""
    ran = {line: Recorded(stdout=text, status=0) for line, text in commands.items()}
    on = Evidence(CapturedHost(Capture(schema="bringup/capture", version=1, files=dict(files), commands=ran), "c"))
    return repair_of(on, diagnoses()[id], Candidate(strength=0.9, params=dict(params)))


def commands_of(id: str, files: dict[str, str], commands: dict[str, str], **params: str) -> list[str]:
    """Return the commands of a repair on a made-up machine."""
    return [" ".join(argv) for step in repair(id, files, commands, **params).steps for argv in step.commands]


def test_modules_that_were_unloaded_are_all_loaded_again() -> None:
    files = {
        **_UBUNTU,
        "/proc/modules": "nvidia_peermem 1 0 - Live 0\nnvidia_uvm 1 0 - Live 0\nnvidia 1 2 nvidia_peermem,nvidia_uvm, Live 0\n",
    }
    assert commands_of("reboot-pending-after-driver-update", files, {}) == [
        "modprobe -r nvidia_uvm nvidia_peermem nvidia",
        "modprobe --all nvidia nvidia_peermem nvidia_uvm",
    ]


def test_ready_modules_are_those_of_the_branch_that_is_installed() -> None:
    rows = "rc  linux-modules-nvidia-535-6.8.0-31-generic 6.8.0-31 amd64 x\nii  linux-modules-nvidia-570-open-generic 6.8.0-59 amd64 x\n"
    (first, *_) = commands_of("no-module-for-running-kernel", _UBUNTU, {"dpkg -l": rows})
    assert first == "apt-get install linux-modules-nvidia-570-open-6.8.0-60-generic"


def test_what_is_left_of_an_older_version_in_dkms_is_not_built_again() -> None:
    commands = {
        "dkms status": "nvidia/550.54.14, 6.8.0-60-generic, x86_64: installed\n",
        "dpkg -l": "ii  libnvidia-compute-550 550.120-1 amd64 x\nii  nvidia-dkms-550 550.120-1 amd64 x\n",
    }
    (first, *_) = commands_of("stale-module-on-disk", _UBUNTU, commands)
    assert first.startswith("apt-get ")
    assert first.endswith(" --reinstall --no-remove install nvidia-dkms-550=550.120-1")


def test_open_modules_take_the_place_of_closed_ones_that_came_ready() -> None:
    rows = "ii  nvidia-driver-570 570.1-0ubuntu1 amd64 x\nii  linux-modules-nvidia-570-generic-hwe-24.04 6.8.0-60 amd64 x\n"
    (first, *_) = commands_of("gpu-needs-open-module", _UBUNTU, {"dpkg -l": rows})
    assert first == "apt-get install nvidia-driver-570-open linux-modules-nvidia-570-open-generic-hwe-24.04"


def test_tools_of_rpm_fusion_have_its_names() -> None:
    rows = "akmod-nvidia-470xx-470.1-1.fc44.x86_64\nxorg-x11-drv-nvidia-470xx-libs-470.1-1.fc44.x86_64\n"
    assert commands_of("driver-utilities-package-missing", {"/etc/os-release": "ID=fedora\nVERSION_ID=44\n"}, {"rpm -qa": rows}) == [
        "dnf install xorg-x11-drv-nvidia-470xx-cuda"
    ]


def test_holds_of_other_packages_stay_where_the_held_one_is_not_known() -> None:
    held = {"apt-mark showhold": "linux-image-generic\nlibnccl2\n", "dpkg -l": "ii  bash 5 amd64 x\n"}
    assert not any("unhold" in line for line in commands_of("held-package-blocks-install", _UBUNTU, held, library="?", wanted="?"))
    assert "apt-mark unhold libnccl2" in commands_of("held-package-blocks-install", _UBUNTU, held, library="libnccl2", wanted="?")


def test_another_driver_of_the_kernel_is_kept_out_beside_the_first() -> None:
    path = "/etc/modprobe.d/bringup-blacklist.conf"
    files = {**_UBUNTU, path: "# x\nblacklist nouveau\noptions nouveau modeset=0\n"}
    mended = repair("in-tree-driver-owns-gpu", files, {"dpkg -l": "ii  nvidia-dkms-570 570.1-1 amd64 x\n"}, driver="nova_core")
    (write,) = (action for step in mended.steps for action in step.actions if isinstance(action, Write))
    assert write.text == f"{files[path]}blacklist nova_core\noptions nova_core modeset=0\n"


def test_a_running_kernel_that_an_upgrade_took_away_only_wants_a_reboot() -> None:
    files = {
        "/etc/os-release": "ID=arch\n",
        "/proc/sys/kernel/osrelease": "6.11.1-arch1-1\n",
        "/lib/modules/6.11.3-arch1-1/vmlinuz": "",
        "/lib/modules/6.11.3-arch1-1/extramodules/nvidia.ko.zst": "",
    }
    gone = {"test -e /lib/modules/6.11.1-arch1-1": Recorded(status=1), "pacman -Q": Recorded(stdout="nvidia 570.1-1\n", status=0)}
    on = Evidence(CapturedHost(Capture(schema="bringup/capture", version=1, files=dict(files), commands=gone), "c"))
    steps = repair_of(on, diagnoses()["no-module-for-running-kernel"], Candidate(strength=0.9)).steps
    assert [step.reboot for step in steps] == [True]


def test_pacman_is_a_persons_to_run_for_its_transactions_cannot_be_foreseen() -> None:
    arch = {"/etc/os-release": "ID=arch\n", "/proc/sys/kernel/osrelease": "6.11.1-arch1-1\n"}
    rows = {"pacman -Q": "linux 6.11.1.arch1-1\nnvidia-dkms 570.1-1\nnvidia-utils 570.1-1\n", "dkms status": "nvidia/570.1: added\n"}
    mended = repair("kernel-headers-missing", arch, rows)
    assert (mended.steps[0].command, mended.steps[0].actions) == (("pacman", "-S", "--needed", "linux-headers"), ())
    again = repair("gpu-firmware-file-missing", arch, rows)
    assert (again.steps[0].command, again.steps[0].actions) == (("pacman", "-S", "nvidia-dkms"), ())


def test_in_a_container_the_repair_of_the_kernels_half_is_the_hosts() -> None:
    files = {**_UBUNTU, "/.dockerenv": ""}
    mended = repair("reboot-pending-after-driver-update", files, {})
    assert [step.says.key.rpartition(".")[2] for step in mended.steps] == ["on-host", "reboot"]
    assert not mended.runs
    assert repair("http-cache-corrupts-repo-data", files, {"dpkg -l": "ii  bash 5 amd64 x\n"}).runs


@pytest.mark.parametrize(("programs", "steps"), [(("mkinitcpio",), [True]), (("dracut",), [False]), ((), [])])
def test_an_initramfs_of_another_program_is_a_persons(programs: tuple[str, ...], steps: list[bool]) -> None:
    files = {"/etc/os-release": "ID=arch\n", **{f"/usr/bin/{program}": "" for program in programs}}
    seen = Evidence(AnsweringHost(Capture(schema="bringup/capture", version=1, files=dict(files))))
    assert [bool(step.actions) for step in images(seen)] == steps
    seen.close()
