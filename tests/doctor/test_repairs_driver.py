"""Repairs of a driver fit the cards of that machine, all of them."""

from __future__ import annotations

import pytest

from steps.catalog.diagnoses import diagnoses
from steps.doctor.diagnosis import Diagnosis, Repair, Verdict
from steps.doctor.evidence import Evidence
from steps.doctor.repairs.all import repair_of
from steps.doctor.rules.base import Candidate
from steps.host.captured import Capture, CapturedHost, Recorded
from steps.model.action import Packages, Reboot, Run, Write
from steps.model.run import ActionState, ActionStatus, RunState, stays
from steps.text import say
from tests.doctor import kit
from tests.doctor.test_repairs import repaired

_UBUNTU = {"/etc/os-release": 'ID=ubuntu\nVERSION_ID="24.04"\n', "/proc/sys/kernel/osrelease": "6.8.0-60-generic\n"}


def cause_of(verdict: Verdict) -> Diagnosis:
    assert verdict.cause is not None
    return verdict.cause


def keys(cause: Diagnosis) -> list[str]:
    return [step.says.key.rpartition(".")[2] for step in cause.repair.steps]


def installed(cause: Diagnosis) -> list[str]:
    """Return everything that the packages of a repair's steps are told to install."""
    return [name for step in cause.repair.steps for action in step.actions if isinstance(action, Packages) for name in action.install]


# --- cards that want different drivers --------------------------------------------------------------


def _ignored(card: str, branch: str) -> str:
    return (
        f"[    5.1] NVRM: The NVIDIA {card} GPU installed in this system is\n"
        f"[    5.1] NVRM:  supported through the NVIDIA {branch}.xx Legacy drivers. Please\n"
        "[    5.1] NVRM:  visit http://www.nvidia.com/object/unix.html for more\n"
        "[    5.1] NVRM:  information.  The 580.95.05 NVIDIA driver will ignore\n"
        "[    5.1] NVRM:  this GPU.  Continuing probe...\n"
    )


def beside(card: str) -> Verdict:
    """Return the verdict where the driver ignores a GT 710 and drives this card."""
    commands = {"nvidia-smi -L": f"GPU 0: {card} (UUID: GPU-0)\n", "dmesg": _ignored("GeForce GT 710", "470")}
    return kit.judged(files=_UBUNTU, commands=commands)


def test_an_old_card_beside_one_that_the_driver_drives_takes_no_driver_away() -> None:
    for card, words in (("NVIDIA GeForce RTX 5090", "because-two-drivers"), ("NVIDIA GeForce RTX 3090", "because-older-card")):
        verdict = beside(card)
        assert verdict.healthy
        assert cause_of(verdict).because.key.rpartition(".")[2] == words
        assert cause_of(verdict).repair.steps == ()


def test_an_old_card_alone_gets_its_branch() -> None:
    cause = cause_of(kit.judged(files=_UBUNTU, commands={"dmesg": _ignored("GeForce GT 710", "470"), "dpkg -l": "ii  bash 5 amd64 x\n"}))
    assert cause.id == "gpu-needs-legacy-driver"
    assert installed(cause) == ["nvidia-driver-470"]


_NO_GSP = (
    "NVRM: The NVIDIA GPU 0000:3b:00.0 (PCI ID: 10de:1db1)\nNVRM: installed in this system is not supported by open\n"
    "NVRM: nvidia.ko because it does not include the required GPU\nNVRM: System Processor (GSP).\n"
)


def refused(branch: str, version: str, others: str = "") -> Diagnosis:
    """Return the cause where the open module of a driver refuses a V100."""
    files = {
        **_UBUNTU,
        "/proc/driver/nvidia/version": f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {version}  Release Build\n",
    }
    commands = {
        "dmesg": _NO_GSP,
        "dpkg -l": f"ii  nvidia-driver-{branch}-open {version}-0ubuntu1 amd64 x\n",
        "lspci -nn": f"3b:00.0 3D controller [0302]: NVIDIA Corporation GV100GL [Tesla V100 SXM2 16GB] [10de:1db1] (rev a1)\n{others}",
    }
    return cause_of(kit.judged(files=files, commands=commands))


def test_the_closed_modules_are_advised_only_in_a_branch_that_drives_the_card() -> None:
    cause = refused("580", "580.95.05")
    assert (cause.id, installed(cause)) == ("gpu-unsupported-by-open-module", ["nvidia-driver-580"])
    cause = refused("590", "590.44.01")
    assert (cause.id, installed(cause)) == ("gpu-needs-legacy-driver", ["nvidia-driver-580"])


def test_cards_that_want_different_modules_are_a_persons_choice() -> None:
    blackwell = "4b:00.0 VGA compatible controller [0300]: NVIDIA Corporation GB202 [GeForce RTX 5090] [10de:2b85] (rev a1)\n"
    cause = refused("580", "580.95.05", blackwell)
    assert cause.id == "gpu-unsupported-by-open-module"
    assert (keys(cause), cause.repair.runs) == (["choose-card"], False)


@pytest.mark.parametrize(
    ("started", "built", "kernel"),
    [
        ("ro recovery nomodeset", "5.4.0-99-generic", "5.4.0-99-generic"),
        ("ro quiet", "5.4.0-135-generic", "5.4.0-135-generic"),
        ("ro quiet", "5.4.0-99-generic", None),
    ],
)
def test_a_kernel_that_has_the_module_is_started_before_one_is_built(started: str, built: str, kernel: str | None) -> None:
    files = {"/proc/version": "Linux version 5.4.0-132-generic (a@b) #1 SMP", "/proc/cmdline": f"BOOT_IMAGE=/vmlinuz {started}\n"}
    commands = {
        "dkms status": f"nvidia, 520.56.06, {built}, x86_64: installed\n",
        "nvidia-smi": "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
    }
    cause = kit.judged(files=files, commands=commands).cause
    assert cause is not None
    assert cause.id == "no-module-for-running-kernel"
    steps = cause.repair.steps
    first = steps[0].says.params.get("kernel") if steps[0].says.key == "repair.step.other-kernel" else None
    assert first == kernel
    assert "dkms install --force nvidia/520.56.06 -k 5.4.0-132-generic" in {" ".join(step.command or ()) for step in steps}


# --- RPM Fusion's modules -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("id", "before", "after"),
    [
        ("gpu-unsupported-by-open-module", None, "%_without_kmod_nvidia_detect 1\n"),
        ("gpu-unsupported-by-open-module", "%_with_kmod_nvidia_open 1\n%_x 1\n", "%_x 1\n%_without_kmod_nvidia_detect 1\n"),
        ("gpu-needs-open-module", "%_without_kmod_nvidia_detect 1\n", "%_with_kmod_nvidia_open 1\n"),
        ("gpu-needs-open-module", "%global _with_kmod_nvidia_open 0\n", "%_with_kmod_nvidia_open 1\n"),
    ],
)
def test_a_macro_that_forces_the_other_modules_is_gone_not_zero(id: str, before: str | None, after: str) -> None:
    files = {"/etc/os-release": "ID=fedora\nVERSION_ID=42\n", **({"/etc/rpm/macros.nvidia-kmod": before} if before else {})}
    listed = {"rpm -qa": Recorded(stdout="akmod-nvidia-570.1-1.fc42.x86_64\n", status=0)}
    on = Evidence(CapturedHost(Capture(schema="bringup/capture", version=1, files=dict(files), commands=listed), "c"))
    first = repaired(on, id).steps[0].actions[0]
    assert isinstance(first, Write)
    assert first.text == after


# --- Secure Boot --------------------------------------------------------------------------------------

_DER, _DKMS_PUB = "/var/lib/shim-signed/mok/MOK.der", "/var/lib/dkms/mok.pub"
_UNSIGNED = "[  9.1] Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7\n"
_REJECTED = "[  9.1] Loading of module with unavailable key is rejected\n"


def kept_out(
    dmesg: str, release: str, rows: dict[str, str], gone: tuple[str, ...] = (), waiting: str | None = "MokNew is empty\n"
) -> Repair:
    """Return the repair of a module that Secure Boot keeps out; the certificates in `gone` are not on the machine."""
    commands = {
        "mokutil --sb-state": Recorded(stdout="SecureBoot enabled\n", status=0),
        "dmesg": Recorded(stdout=dmesg, status=0),
        **{name: Recorded(stdout=text, status=0) for name, text in rows.items()},
        **{f"test -e {path}": Recorded(stdout="", status=1) for path in gone},
        **({} if waiting is None else {"mokutil --list-new": Recorded(stdout=waiting, status=0)}),
    }
    files = {"/etc/os-release": release, "/proc/sys/kernel/osrelease": "6.8.0-60-generic\n"}
    on = Evidence(CapturedHost(Capture(schema="bringup/capture", version=1, files=dict(files), commands=commands), "c"))
    return repair_of(on, diagnoses()["mok-not-enrolled"], Candidate(strength=0.9))


_JAMMY = "ID=ubuntu\nVERSION_ID=22.04\n"
_DKMS = {"dpkg -l": "ii  nvidia-driver-535 535.183-0ubuntu0.22.04.1 amd64 x\nii  nvidia-dkms-535 535.183-0ubuntu0.22.04.1 amd64 x\n"}
_BOOKWORM, _FEDORA = "ID=debian\nVERSION_ID=12\n", "ID=fedora\nVERSION_ID=44\n"
_AKMODS_KEY = "/etc/pki/akmods/certs/public_key.der"
_KERNEL_DKMS = {"dpkg -l": "ii  nvidia-kernel-dkms 535.1-1 amd64 x\n"}
_AKMOD = {"rpm -qa": "akmod-nvidia-570.1-1.fc44.x86_64\n"}


@pytest.mark.parametrize(
    ("dmesg", "release", "rows", "gone", "steps"),
    [
        (_UNSIGNED, _JAMMY, _DKMS, (_DER, _DKMS_PUB), ["signed-modules", "make-key", "reinstall", "enroll", "reboot"]),
        (_UNSIGNED, _JAMMY, _DKMS, (_DKMS_PUB,), ["signed-modules", "reinstall", "enroll", "reboot"]),
        (_REJECTED, _JAMMY, _DKMS, (_DER,), ["signed-modules", "make-key", "reinstall", "enroll", "reboot"]),
        (_REJECTED, _JAMMY, _DKMS, (), ["enroll", "reboot"]),
        (
            _UNSIGNED,
            "ID=debian\nVERSION_ID=12\n",
            {"dpkg -l": "ii  nvidia-kernel-dkms 535.1-1 amd64 x\n"},
            (_DKMS_PUB,),
            ["reinstall", "enroll", "reboot"],
        ),
        (
            _UNSIGNED,
            "ID=fedora\nVERSION_ID=44\n",
            _AKMOD,
            ("/etc/pki/akmods/certs/public_key.der",),
            ["make-key", "build-akmod", "enroll", "reboot"],
        ),
    ],
)
def test_a_module_without_a_signature_is_signed_before_its_key_is_enrolled(
    dmesg: str, release: str, rows: dict[str, str], gone: tuple[str, ...], steps: list[str]
) -> None:
    repair = kept_out(dmesg, release, rows, gone)
    assert [step.says.key.rpartition(".")[2] for step in repair.steps] == steps
    if "signed-modules" in steps:
        assert repair.steps[0].command == ("apt-get", "install", "linux-modules-nvidia-535-generic-hwe-22.04")
    enrolled = next(step for step in repair.steps if step.says.key.endswith(".enroll"))
    # A certificate that is not here is one that a step before makes.
    made = {"make-key", "reinstall", "build-akmod"} & set(steps)
    assert made or (enrolled.command or ("",))[-1] not in gone


@pytest.mark.parametrize(
    ("waiting", "undone"),
    [("MokNew is empty\n", True), ("", True), ("[key 1]\nSHA1 Fingerprint: aa:bb\n", False), (None, False)],
)
def test_other_peoples_keys_are_left_in_the_queue(waiting: str | None, undone: bool) -> None:
    step = kept_out(_REJECTED, _JAMMY, _DKMS, waiting=waiting).steps[0]
    (action,) = step.actions
    assert isinstance(action, Run)
    assert bool(action.undo) is undone
    assert "mokutil --delete" in say("en", action.stays)


def test_a_key_is_said_to_stay_where_it_was_enrolled_at_a_boot() -> None:
    actions = (Run(id="driver.key", title="t", argv=("mokutil",), stays="kept"), Reboot(id="repair.reboot", title="t", reason="r"))
    cases: tuple[tuple[ActionStatus, str], ...] = (("done", "kept"), ("waiting", ""))
    for booted, kept in cases:
        states = {
            "driver.key": ActionState(id="driver.key", status="undone"),
            "repair.reboot": ActionState(id="repair.reboot", status=booted),
        }
        assert stays(actions, RunState(status="undone", actions=states)) == kept


# --- one branch in another one's place ----------------------------------------------------------------

_REFUSED_550 = (
    " nvidia-driver-550 : Depends: nvidia-dkms-550 (= 550.90.07-0ubuntu1) but it is not going to be installed or\n"
    "                     Depends: libnvidia-decode-550 (= 550.90.07-0ubuntu1) but it is not going to be installed\n"
)
_STATUS = "Package: {name}\nStatus: install ok installed\nVersion: {version}\nArchitecture: amd64\n\n"


def refused_550(*packages: tuple[str, str]) -> Diagnosis | None:
    """Return the cause where apt refuses a driver beside these packages."""
    status = "".join(_STATUS.format(name=name, version=version) for name, version in packages)
    files = {"/etc/os-release": "ID=ubuntu\nVERSION_ID=22.04\n", "/var/lib/dpkg/status": status}
    return kit.judged(files=files, logs={"apt.log": _REFUSED_550}, commands={}).cause


def test_the_driver_that_runs_goes_only_in_the_transaction_that_brings_the_other() -> None:
    cause = refused_550(("nvidia-driver-535-server", "535.183.01-0ubuntu1"), ("nvidia-dkms-535-server", "535.183.01-0ubuntu1"))
    assert cause is not None
    assert cause.id == "conflicting-driver-branch-blocks-install"
    first = cause.repair.steps[0].actions[0]
    assert isinstance(first, Packages)
    assert first.install == ("nvidia-driver-550-server", "nvidia-driver-535-server-", "nvidia-dkms-535-server-")
    assert first.may_remove == ("nvidia-driver-535-server", "nvidia-dkms-535-server")
    assert len([action for step in cause.repair.steps for action in step.actions if isinstance(action, Packages) and action.install]) == 1


@pytest.mark.parametrize(("pin", "goes"), [("nvidia-driver-pinning-535", True), ("nvidia-driver-pinning-550.90.07", False)])
def test_what_holds_apt_at_the_other_branch_goes_with_it(pin: str, goes: bool) -> None:
    cause = refused_550(("nvidia-driver-535-server", "535.183.01-0ubuntu1"), (pin, "535.183.01-1ubuntu1"))
    assert cause is not None
    first = cause.repair.steps[0].actions[0]
    assert isinstance(first, Packages)
    assert (pin in first.may_remove, f"{pin}-" in first.install) == (goes, goes)


def test_where_no_driver_is_installed_none_is_in_the_way() -> None:
    cause = refused_550(("bash", "5.1"))
    assert cause is None or cause.id != "conflicting-driver-branch-blocks-install"


# --- a hold -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "last"),
    [
        ("$ sudo apt-get install -y nvidia-driver-550\n", ("nvidia-driver-550",)),
        ("$ sudo apt install nvidia-driver-550=550.120-0ubuntu0.22.04.1 vim\n", ("nvidia-driver-550=550.120-0ubuntu0.22.04.1",)),
        ("", ()),
    ],
)
def test_after_a_hold_has_ended_what_was_refused_is_installed(typed: str, last: tuple[str, ...]) -> None:
    log = f"{typed}The following held packages will be changed:\n  nvidia-dkms-535\nE: Held packages were changed and -y was used\n"
    commands = {"apt-mark showhold": "nvidia-dkms-535\n", "dpkg -l": "hi  nvidia-dkms-535 535.183.01-0ubuntu0.22.04.1 amd64 x\n"}
    cause = kit.judged(files={"/etc/os-release": "ID=ubuntu\nVERSION_ID=22.04\n"}, logs={"apt.log": log}, commands=commands).cause
    assert cause is not None
    assert cause.id == "held-package-blocks-install"
    assert "libnccl2" not in say("en", cause.title)
    assert cause.repair.steps[0].command == ("apt-mark", "unhold", "nvidia-dkms-535")
    end = cause.repair.steps[-1]
    found = [action.install for action in end.actions if isinstance(action, Packages)]
    assert found == ([last] if last else [])
    assert last or end.says.key.endswith("install-again")


# --- a profile that keeps the module out ------------------------------------------------------------

_SILENT = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is\n"
_LISTED = "blacklist nvidia\nblacklist nvidia_drm\n"
_PROFILES: tuple[tuple[dict[str, str], str, tuple[str, ...]], ...] = (
    ({"/etc/modprobe.d/supergfxd.conf": _LISTED}, "", ("supergfxctl", "-m", "Hybrid")),
    ({"/etc/modprobe.d/blacklist-nvidia.conf": f"# Generated by EnvyControl\n{_LISTED}"}, "", ("envycontrol", "-s", "hybrid")),
    ({}, "sudo system76-power graphics integrated\n", ("system76-power", "graphics", "hybrid")),
)


@pytest.mark.parametrize(("files", "typed", "back"), _PROFILES)
def test_the_program_that_keeps_the_module_out_is_told_to_let_it_in(files: dict[str, str], typed: str, back: tuple[str, ...]) -> None:
    verdict = kit.judged(files={**_UBUNTU, **files}, commands={"nvidia-smi": _SILENT}, logs={"shell-history.log": typed})
    cause = cause_of(verdict)
    assert cause.id == "driver-blocked-by-prime-profile"
    assert cause.repair.steps[0].command == back
    assert cause.repair.steps[0].actions == ()


# --- two packages of one file -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "step"),
    [
        ("from install of nvidia-kmod-common-3:{} conflicts with file from package xorg-x11-drv-nvidia-3:{}", "other-branch-away"),
        ("conflicts between attempted installs of nvidia-kmod-common-3:{} and xorg-x11-drv-nvidia-3:{}", "which-driver"),
    ],
)
def test_of_two_packages_that_are_yet_to_be_installed_none_is_taken_away(said: str, step: str) -> None:
    line = f"  file /usr/lib/udev/rules.d/60-nvidia.rules {said.format('570.86.15-1.fc41.noarch', '570.86.16-1.fc41.x86_64')}\n"
    cause = cause_of(kit.judged(files={"/etc/os-release": "ID=fedora\nVERSION_ID=41\n"}, logs={"dnf.log": line}))
    assert cause.id == "driver-package-file-conflict"
    assert keys(cause)[0] == step


@pytest.mark.parametrize(
    ("installed", "step"),
    [("xorg-x11-drv-nvidia-libs", "which-driver"), ("xorg-x11-drv-nvidia", "other-branch-away"), ("bash", "other-branch-away")],
)
def test_in_another_language_the_list_tells_that_neither_package_is_installed(installed: str, step: str) -> None:
    new, other = "nvidia-kmod-common-3:570.86.15-1.fc41.noarch", "xorg-x11-drv-nvidia-3:570.86.16-1.fc41.x86_64"
    line = f"  файл /usr/lib/udev/rules.d/60-nvidia.rules конфликтует с {new} и {other}\n"
    commands = {"rpm -qa": f"{installed}-570.86.16-1.fc41.x86_64\n"}
    cause = cause_of(kit.judged(files={"/etc/os-release": "ID=fedora\nVERSION_ID=41\n"}, commands=commands, logs={"dnf.log": line}))
    assert keys(cause)[0] == step
