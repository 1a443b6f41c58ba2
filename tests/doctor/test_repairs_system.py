"""Repairs of the system use its own manager, ask nothing, and touch no other machine."""

from __future__ import annotations

import pytest

from steps.catalog.diagnoses import diagnoses
from steps.catalog.repairs import System
from steps.doctor.diagnosis import Diagnosis, Repair
from steps.doctor.evidence import Evidence
from steps.doctor.repairs.all import repair_of
from steps.doctor.rules.base import Candidate
from steps.host.captured import Capture, CapturedHost, Recorded
from steps.model.action import Command, Packages, Run, Write
from tests.doctor import kit
from tests.doctor.test_repairs import all_of, machine

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


# --- single cards -----------------------------------------------------------------------------------


def commands(repair: Repair) -> list[str]:
    return [" ".join(argv) for step in repair.steps for argv in step.commands]


def test_a_reset_names_the_card_that_failed() -> None:
    cause = cause_of({"dmesg": "NVRM: Xid (PCI:0000:ab:00): 119, pid=1, Timeout after 6s of waiting for RPC response from GPU0 GSP!\n"}, {})
    assert "nvidia-smi --gpu-reset -i 0000:ab:00.0" in commands(cause.repair)
    assert "fuser -v /dev/nvidiactl /dev/nvidia-uvm" in commands(cause.repair)


def test_without_a_named_card_a_person_says_which_is_reset() -> None:
    repair = repaired(machine("apt"), "memory-repair-pending-reset")
    assert not repair.runs
    assert commands(repair)[-1] == "nvidia-smi --gpu-reset -i ADDRESS"


@pytest.mark.parametrize(
    ("gfx", "variable"),
    [
        ("gfx1031", ["env HSA_OVERRIDE_GFX_VERSION=10.3.0 PROGRAM"]),
        ("gfx1103", ["env HSA_OVERRIDE_GFX_VERSION=11.0.0 PROGRAM"]),
        ("gfx1030", []),
        ("gfx906", []),
        ("?", []),
    ],
)
def test_a_card_is_taken_for_a_relative_of_its_own_family_only(gfx: str, variable: list[str]) -> None:
    assert commands(repaired(machine("apt"), "rocblas-lacks-gpu-kernels", gfx=gfx)) == variable


def test_the_group_of_the_nodes_is_the_one_in_their_line() -> None:
    told = {
        "nvidia-smi": "Failed to initialize NVML: Insufficient Permissions\n",
        "ls -l /dev/nvidia0": "crw-rw---- 1 root gpuusers 195, 0 Nov 30 10:00 /dev/nvidia0\n",
    }
    cause = cause_of({}, told)
    assert cause.id == "device-nodes-restricted"
    assert commands(cause.repair) == ["usermod --append --groups gpuusers USER"]


# --- the fabric manager -----------------------------------------------------------------------------

_APART = (
    "nv-fabricmanager[3228]: fabric manager NVIDIA GPU driver interface version 550.54.15 don't match with driver version 570.124.06. "
    "Please update with matching NVIDIA driver package.\n"
)


@pytest.mark.parametrize(
    ("release", "listing", "install", "gone"),
    [
        (
            "ID=ubuntu\n",
            {"dpkg -l": "ii  nvidia-fabricmanager-550 550.54.15-1 amd64 x\n"},
            "nvidia-fabricmanager-570=570.124.06-*",
            "nvidia-fabricmanager-550",
        ),
        ("ID=rocky\nID_LIKE=rhel\n", {"rpm -qa": "nvidia-fabric-manager-550.54.15-1.x86_64\n"}, "nvidia-fabric-manager=570.124.06", None),
    ],
)
def test_the_fabric_manager_keeps_its_name_and_takes_the_drivers_branch(
    release: str, listing: dict[str, str], install: str, gone: str | None
) -> None:
    cause = kit.judged(files={"/etc/os-release": release}, commands=listing, logs={"journal": _APART}).cause
    assert cause is not None
    assert cause.because.params == {"own": "550.54.15", "driver": "570.124.06"}
    (action,) = cause.repair.steps[0].actions
    assert isinstance(action, Packages)
    assert action.install == (install,)
    assert action.may_remove == ((gone,) if gone else ())
    # A fabric manager that ran ahead of the driver comes back to it; nothing else does.
    assert action.may_downgrade == (install.partition("=")[0],)


# --- words and commands that fit --------------------------------------------------------------------


def test_the_key_that_was_asked_about_is_the_one_to_hand_over() -> None:
    case = next(one for one in kit.cases() if one.name.startswith("037-"))
    cause = kit.verdict(case.capture).cause
    assert cause is not None
    assert "mokutil --import /var/lib/dkms/mok.pub" in commands(cause.repair)


@pytest.mark.parametrize(("line", "program"), [("shm 64M 64M 0 100% /dev/shm", "docker"), ("tmpfs 1.0G 1.0G 0 100% /dev/shm", "mount")])
def test_shared_memory_grows_where_it_is_too_small(line: str, program: str) -> None:
    log = "NCCL WARN Error: failed to extend /dev/shm/nccl-YaEvdl to 33030660 bytes, error: No space left on device (28)\n"
    cause = cause_of({"python.log": log}, {"df -h": f"{line}\n"})
    assert cause.id == "shm-too-small"
    assert commands(cause.repair)[0].split()[0] == program


def test_a_package_whose_script_failed_is_not_called_cut_off() -> None:
    failed = kit.judged(files=_UBUNTU, commands={"dpkg -l": "iF  cuda-keyring 1.1-1 all x\n"}).cause
    unpacked = kit.judged(files=_UBUNTU, commands={"dpkg -l": "iU  cuda-keyring 1.1-1 all x\n"}).cause
    assert failed is not None
    assert unpacked is not None
    assert failed.id == unpacked.id == "dpkg-interrupted"
    assert [one.because.key.rpartition(".")[2] for one in (failed, unpacked)] == ["because-failed", "because"]


def test_the_advice_on_an_older_cuda_keeps_the_driver() -> None:
    smi = "| NVIDIA-SMI 535.183.01    Driver Version: 535.183.01    CUDA Version: 12.2 |\n"
    log = "RuntimeError: The NVIDIA driver on your system is too old (found version 12020). Please update your GPU driver\n"
    cause = cause_of({"python.log": log}, {"nvidia-smi": smi})
    assert cause.id == "driver-too-old-for-cuda"
    assert any("recommend --want driver==535 --want torch" in line for line in commands(cause.repair))


# --- names of other distributions and kernels ---------------------------------------------------------


def on_kernel(release: str, kernel: str, listing: dict[str, str]) -> Repair:
    files = {"/etc/os-release": release, "/proc/sys/kernel/osrelease": f"{kernel}\n"}
    return repaired(seen(listing, files), "kernel-headers-missing", kernel=kernel)


@pytest.mark.parametrize(
    ("release", "kernel", "listing", "package"),
    [
        ("ID=debian\n", "6.8.12-4-pve", {"dpkg -l": "ii  dkms 3 all x\n"}, "proxmox-headers-6.8.12-4-pve"),
        ("ID=debian\n", "5.15.108-1-pve", {"dpkg -l": "ii  dkms 3 all x\n"}, "pve-headers-5.15.108-1-pve"),
        ("ID=debian\n", "6.2.16-5-pve", {"dpkg -l": "ii  dkms 3 all x\n"}, None),
        ("ID=debian\n", "6.1.0-25-amd64", {"dpkg -l": "ii  dkms 3 all x\n"}, "linux-headers-6.1.0-25-amd64"),
        (
            "ID=ol\nID_LIKE=fedora\n",
            "5.15.0-206.153.7.el9uek.x86_64",
            {"rpm -qa": "dkms-3-1.noarch\n"},
            "kernel-uek-devel-5.15.0-206.153.7.el9uek.x86_64",
        ),
        (
            "ID=rocky\nID_LIKE=rhel\n",
            "5.14.0-427.el9.x86_64",
            {"rpm -qa": "dkms-3-1.noarch\n"},
            "kernel-devel-5.14.0-427.el9.x86_64",
        ),
    ],
)
def test_headers_are_named_as_the_kernels_own_distribution_does(
    release: str, kernel: str, listing: dict[str, str], package: str | None
) -> None:
    repair = on_kernel(release, kernel, listing)
    found = [name for step in repair.steps for action in step.actions if isinstance(action, Packages) for name in action.install]
    assert found == ([package] if package else [])


@pytest.mark.parametrize(("installed", "steps"), [("6.11.5.arch1-1", ["headers", "reboot"]), ("6.11.1.arch1-1", ["headers", "build-all"])])
def test_an_arch_kernel_that_was_upgraded_away_wants_a_reboot(installed: str, steps: list[str]) -> None:
    repair = on_kernel("ID=arch\n", "6.11.1-arch1-1", {"pacman -Q": f"linux {installed}\nnvidia-utils 570.1-1\n"})
    assert keys(repair)[:2] == steps


def test_a_compiler_is_asked_for_where_it_can_be_had() -> None:
    def found(release: str, listing: dict[str, str]) -> tuple[list[str], str]:
        repair = repaired(seen(listing, {"/etc/os-release": release}), "host-compiler-too-new-for-nvcc", newest="12")
        names = [name for step in repair.steps for action in step.actions if isinstance(action, Packages) for name in action.install]
        return names, " ".join(repair.steps[-1].command or ())

    toolset = found("ID=rocky\nID_LIKE=rhel\n", {"rpm -qa": "gcc-13-1.x86_64\n"})
    assert toolset == (["gcc-toolset-12"], "scl enable gcc-toolset-12 COMMAND")
    assert found("ID=fedora\n", {"rpm -qa": "gcc-15-1.x86_64\n"})[0] == []
    assert found("ID=ubuntu\n", {"dpkg -l": "ii  gcc-13 13 amd64 x\n"})[0] == ["gcc-12", "g++-12"]


def test_an_archive_without_the_branch_is_no_repair() -> None:
    for branch, names in (("470", ["nvidia-driver-470"]), ("390", [])):
        repair = repaired(seen({"dpkg -l": "ii  bash 5 amd64 x\n"}), "gpu-needs-legacy-driver", branch=branch)
        found = [name for step in repair.steps for action in step.actions if isinstance(action, Packages) for name in action.install]
        assert found == names


def test_suse_is_given_no_commands_of_another_family() -> None:
    files = {"/etc/os-release": 'ID="sles"\nID_LIKE="suse"\nVERSION_ID="15.6"\n', "/proc/sys/kernel/osrelease": "6.4.0-150600.23-default\n"}
    suse = seen({"rpm -qa": "nvidia-driver-G06-570.1-1.x86_64\n"}, files)
    others = {"apt-get", "dpkg", "apt-mark", "dnf", "dracut", "akmods", "pacman", "mkinitcpio", "update-initramfs"}
    only_apt = {id for id, row in diagnoses().items() if row.category in ("apt-state", "ssh-installer")}
    wrong = [
        (id, argv[0])
        for id in set(diagnoses()) - only_apt
        for step in repaired(suse, id, kernel="6.4.0-150600.23-default", package="x", driver="nouveau", newest="12").steps
        for argv in (step.commands if step.actions else ())
        if argv[0] in others
    ]
    assert wrong == []


# --- managers other than apt --------------------------------------------------------------------------


@pytest.mark.parametrize(("manager", "command"), [("dnf", "dnf distro-sync"), ("pacman", "pacman -Syu")])
def test_no_run_upgrades_a_whole_system_by_itself(manager: System, command: str) -> None:
    for id, repair in all_of(manager):
        for step in repair.steps:
            for action in step.actions:
                argv = " ".join(action.argv) if isinstance(action, Run) else ""
                assert not any(word in argv for word in ("distro-sync", "-Sy", "upgrade")), (id, argv)
        asked = repair.verify.command if repair.verify else ()
        assert not {"-Sy", "-Syu", "distro-sync"} & set(asked), (id, asked)
    told = [step for step in repaired(machine(manager), "dpkg-interrupted").steps if step.says.key.endswith("upgrade-system")]
    assert [" ".join(step.command or ()) for step in told] == [command]
    assert not any(step.actions for step in told)


@pytest.mark.parametrize("manager", ["apt", "dnf", "pacman"])
def test_lists_of_two_states_cost_no_package_that_an_undo_needs(manager: System) -> None:
    assert keys(repaired(machine(manager), "repo-inconsistent-on-server")) == ["wait-server", "refresh"]


# --- CDI ----------------------------------------------------------------------------------------------

_LIBRARY = "/usr/lib/x86_64-linux-gnu/libcuda.so."


def _spec(version: str) -> str:
    return f"cdiVersion: 0.5.0\ncontainerEdits:\n  mounts:\n  - containerPath: {_LIBRARY}{version}\n    hostPath: {_LIBRARY}{version}\n"


@pytest.mark.parametrize(
    ("there", "outputs"),
    [
        ({"/etc/cdi/nvidia.yaml": "535.183.01"}, ["/etc/cdi/nvidia.yaml"]),
        ({"/var/run/cdi/nvidia.yaml": "535.183.01"}, ["/var/run/cdi/nvidia.yaml"]),
        ({"/run/cdi/nvidia.yaml": "535.183.01"}, ["/run/cdi/nvidia.yaml"]),
        ({"/etc/cdi/nvidia.yaml": "550.120", "/var/run/cdi/nvidia.yaml": "535.183.01"}, ["/var/run/cdi/nvidia.yaml"]),
        ({"/etc/cdi/nvidia.yaml": "535.183.01", "/var/run/cdi/nvidia.yaml": "550.120"}, ["/etc/cdi/nvidia.yaml"]),
        ({}, ["/etc/cdi/nvidia.yaml"]),
    ],
)
def test_the_specification_is_written_where_the_stale_one_lies(there: dict[str, str], outputs: list[str]) -> None:
    files = {
        **_UBUNTU,
        "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.120  Fri Sep 13 10:10:01 UTC 2024\n",
        **{path: _spec(version) for path, version in there.items()},
    }
    log = f"Error: crun: cannot stat `{_LIBRARY}535.183.01`: No such file or directory: OCI runtime attempted to invoke a command\n"
    cause = kit.judged(files=files, logs={"podman.log": log}, commands={}).cause
    assert cause is not None
    assert cause.id == "cdi-spec-stale"
    assert [argv[-1] for argv in (step.commands[-1] for step in cause.repair.steps)] == [f"--output={path}" for path in outputs]


# --- builds of the module -----------------------------------------------------------------------------

_JAMMY_LOG = """\
DKMS make.log for nvidia-535.98 for kernel 6.4.6-76060406-generic (x86_64)
warning: the compiler differs from the one used to build the kernel
  The kernel was built by: x86_64-linux-gnu-gcc-12 (Ubuntu 12.3.0-1ubuntu1~22.04) 12.3.0
  You are using:           cc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0
cc: error: unrecognized command-line option ‘-ftrivial-auto-var-init=zero’
"""


@pytest.mark.parametrize(
    ("built_by", "package"),
    [
        ("x86_64-linux-gnu-gcc-12 (Ubuntu 12.3.0-1ubuntu1~22.04) 12.3.0", "gcc-12"),
        ("gcc (Debian 14.2.0-19) 14.2.0", "gcc-14"),
        (None, None),
    ],
)
def test_the_log_of_a_build_names_its_compiler_and_its_kernel(built_by: str | None, package: str | None) -> None:
    first, warning, built, *rest = _JAMMY_LOG.splitlines(keepends=True)
    said = f"{built.partition(':')[0]}: {built_by}\n" if built_by else ""
    # The kernel that runs was built by another one.
    files = {**_UBUNTU, "/proc/version": "Linux version 6.8.0-60-generic (x86_64-linux-gnu-gcc-13 (Ubuntu 13.3.0) 13.3.0)\n"}
    listing = {"dpkg -l": "ii  dkms 3 all x\n", "dkms status": "nvidia/535.98, 6.8.0-60-generic, x86_64: installed\n"}
    cause = kit.judged(files=files, logs={"make.log": "".join((first, warning, said, *rest))}, commands=listing).cause
    assert cause is not None
    assert cause.id == "dkms-compiler-too-old"
    found = [name for step in cause.repair.steps for action in step.actions if isinstance(action, Packages) for name in action.install]
    assert found == ([package] if package else [])
    built_for = [argv[-1] for step in cause.repair.steps for argv in step.commands if argv[:2] == ("dkms", "install")]
    assert built_for == ["6.4.6-76060406-generic"]


@pytest.mark.parametrize(
    ("version", "kernel", "newer"),
    [
        ("535.54.03", "6.8.0-60-generic", "apt-get install --only-upgrade nvidia-dkms-535"),
        ("390.157", "6.12.9-arch1-1", None),
        ("470.57.02", "7.3.1-generic", None),
        ("999.10", "6.8.0-60-generic", None),
    ],
)
def test_a_newer_release_of_the_branch_comes_before_another_kernel_or_branch(version: str, kernel: str, newer: str | None) -> None:
    rows = f"ii  nvidia-dkms-{version[:3]} {version}-0ubuntu1 amd64 x\n"
    repair = repaired(seen({"dpkg -l": rows}), "driver-does-not-build-on-kernel", module="nvidia", version=version, kernel=kernel)
    assert keys(repair) == [*(["newer-release"] if newer else []), "older-kernel", "branch-that-builds"]
    assert newer is None or " ".join(repair.steps[0].command or ()) == newer
