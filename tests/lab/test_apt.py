"""The apt manager against real apt and dpkg."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from steps.errors import PreflightError
from steps.managers import apt_repository, apt_sources, base, preflight
from steps.managers.base import Change, Holder
from steps.model.action import installing
from steps.model.base import Phrase
from tests.lab import catalogue, modules
from tests.lab import lab as laboratory
from tests.lab.host import LabHost, done, perform, start
from tests.lab.lab import Lab, LabMachine

pytestmark = pytest.mark.lab

APT = base.manager("apt")
STACK = ("nvidia-open=580.*", "cuda-toolkit-12-8", "libnccl2=2.26.*+cuda12.?", "libcudnn9-cuda-12")
MAY_DIFFER = {"/etc/ld.so.cache", "/etc/passwd-", "/etc/group-", "/etc/shadow-", "/etc/gshadow-", "/etc/subuid-", "/etc/subgid-"}


@pytest.fixture
def host(machine: LabMachine) -> LabHost:
    return LabHost(machine)


def stock(host: LabHost) -> LabHost:
    """Give a host NVIDIA's repository."""
    for action in apt_repository.nvidia_repository(catalogue.NVIDIA_URL):
        done(host, action)
    return host


@pytest.fixture
def stocked(host: LabHost) -> LabHost:
    """Return a host that has NVIDIA's repository and may be changed."""
    return stock(host)


@pytest.fixture(scope="module")
def shelf(lab: Lab) -> Iterator[LabHost]:
    """Return a host that has NVIDIA's repository and is only asked."""
    with laboratory.machine(lab) as machine:
        yield stock(LabHost(machine))


def packages(host: LabHost) -> str:
    return host.machine.run("dpkg", "-l").stdout


def etc(host: LabHost) -> Mapping[str, str]:
    """Return every path below /etc with what it holds: a digest, or where a link leads."""
    script = "find /etc -type f -exec sha256sum {} + ; find /etc -type l -printf '%l  %p\\n'; find /etc -type d -printf 'folder  %p\\n'"
    rows = (line.split("  ", 1) for line in host.machine.run("sh", "-c", script).stdout.splitlines())
    return {path: content for content, path in rows if path not in MAY_DIFFER}


# --- the repository -------------------------------------------------------------------------------


def test_the_repository_is_known_by_a_key_that_vouches_for_it_alone(host: LabHost) -> None:
    for action in apt_repository.nvidia_repository(catalogue.NVIDIA_URL):
        done(host, action)
    assert "Signed-By: /etc/apt/keyrings/cuda-archive-keyring.gpg" in (
        host.read("/etc/apt/sources.list.d/cuda-debian12-x86_64.sources") or ""
    )
    assert host.exists("/usr/share/keyrings/cuda-archive-keyring.gpg") is False
    assert host.listdir("/etc/apt/trusted.gpg.d") == tuple(
        name for name in host.listdir("/etc/apt/trusted.gpg.d") or () if "cuda" not in name
    )
    policy = host.run(("apt-cache", "policy", "libnccl2")).stdout
    assert "600 https://developer.download.nvidia.com" in policy


def test_a_source_that_is_configured_already_is_seen(shelf: LabHost) -> None:
    assert apt_sources.reads(shelf, apt_repository.configured(catalogue.NVIDIA_URL).urls[0])
    assert not apt_sources.reads(shelf, "https://example.org/repos/debian12/x86_64/")


def test_a_repository_that_cannot_be_reached_is_a_failure(host: LabHost) -> None:
    host.write_bytes("/etc/apt/sources.list.d/nowhere.sources", b"Types: deb\nURIs: https://nowhere.invalid/\nSuites: /\nTrusted: yes\n")
    result = start(host.machine, (*APT.refresh_argv()[:-1], "-o", "Acquire::Retries=0", "update"))
    assert result.returncode == 100
    assert APT.cause(result.stdout + result.stderr) == Phrase(key="manager.apt.no-name", params={"text": "nowhere.invalid"})


def test_a_second_key_for_one_repository_is_named_as_the_cause(stocked: LabHost) -> None:
    line = f"deb [signed-by=/usr/share/keyrings/lab-debian.gpg] {catalogue.NVIDIA_URL} /\n"
    stocked.write_bytes("/etc/apt/sources.list.d/zz-by-hand.list", line.encode())
    result = start(stocked.machine, APT.refresh_argv())
    cause = APT.cause(result.stdout + result.stderr)
    assert isinstance(cause, Phrase)
    assert cause.key == "manager.apt.signed-by-twice"


# --- simulation -----------------------------------------------------------------------------------


def test_the_simulation_names_every_package_and_both_sizes(shelf: LabHost) -> None:
    simulation = APT.simulate(installing("apt", "t", "t", STACK), shelf)
    assert simulation.problem is None
    assert len(simulation.changes) == 76
    assert Change(name="libnccl2", after="2.26.2-1+cuda12.8") in simulation.changes
    assert simulation.download_bytes is not None
    assert 500_000 < simulation.download_bytes < 5_000_000
    assert simulation.disk_bytes is not None
    assert 9e9 < simulation.disk_bytes < 12e9
    assert simulation.removed == ()


def test_what_does_not_fit_is_refused_although_apt_would_go_on(shelf: LabHost) -> None:
    action = installing("apt", "t", "t", ("lab-big",))
    with pytest.raises(PreflightError) as refusal:
        preflight.check(action, APT.simulate(action, shelf), shelf)
    assert refusal.value.code == "space-too-small"


def test_a_removal_that_the_plan_does_not_name_is_refused(stocked: LabHost) -> None:
    done(stocked, installing("apt", "t", "t", ("nvidia-open",)))
    switch = installing("apt", "t", "t", ("cuda-drivers",))
    simulation = APT.simulate(switch, stocked)
    assert set(simulation.removed) == {"nvidia-open", "nvidia-kernel-open-dkms"}
    with pytest.raises(PreflightError) as refusal:
        preflight.check(switch, simulation, stocked)
    assert refusal.value.code == "removal-refused"
    result = perform(stocked, switch)
    assert result is not None
    assert result.returncode == 100
    assert APT.cause(result.stdout + result.stderr) == Phrase(
        key="manager.apt.removal", params={"text": "Packages need to be removed but remove is disabled"}
    )


def test_ssh_is_never_removed_whatever_a_plan_allows(stocked: LabHost) -> None:
    done(stocked, installing("apt", "t", "t", ("openssh-server",)))
    action = installing("apt", "t", "t", ("lab-evicts-ssh",), may_remove=("*",))
    with pytest.raises(PreflightError) as refusal:
        preflight.check(action, APT.simulate(action, stocked), stocked)
    assert (refusal.value.code, refusal.value.params["package"]) == ("removal-protected", "openssh-server")


def test_an_unknown_package_is_named(shelf: LabHost) -> None:
    problem = APT.simulate(installing("apt", "t", "t", ("no-such-thing",)), shelf).problem
    assert problem == Phrase(key="manager.apt.no-such-package", params={"text": "no-such-thing"})


def test_packages_that_do_not_fit_say_which(shelf: LabHost) -> None:
    problem = APT.simulate(installing("apt", "t", "t", ("lab-unmet",)), shelf).problem
    assert isinstance(problem, Phrase)
    assert problem.key == "manager.apt.unmet"
    assert "lab-does-not-exist" in str(problem.params["text"])


# --- install and the way back ---------------------------------------------------------------------


def undone(host: LabHost, before: base.Snapshot, kept: base.Kept) -> None:
    """Take the packages back to `before`."""
    after = APT.snapshot(host)
    assert after is not None
    for argv in APT.restore(before, after, kept, frozenset((*before.packages, *after.packages))):
        result = start(host.machine, argv)
        assert result.returncode == 0, f"{argv}\n{result.stdout}{result.stderr}"


def test_the_stack_is_installed_and_taken_back_without_a_trace(stocked: LabHost) -> None:
    done(stocked, installing("apt", "h", "h", ("linux-headers-amd64", "dkms")))
    listed, settings, before = packages(stocked), etc(stocked), APT.snapshot(stocked)
    assert before is not None
    action = installing("apt", "t", "t", STACK)
    assert base.packages_are(action.done_when[0], stocked) is False  # type: ignore[arg-type] # the first probe is the packages
    done(stocked, action)
    assert base.packages_are(action.done_when[0], stocked) is True  # type: ignore[arg-type] # the first probe is the packages
    assert base.module_files(stocked, "nvidia", modules.KERNEL) == (f"/lib/modules/{modules.KERNEL}/updates/dkms/nvidia.ko",)
    assert packages(stocked) != listed
    undone(stocked, before, base.Kept())
    assert packages(stocked) == listed
    assert etc(stocked) == settings
    assert base.module_files(stocked, "nvidia", modules.KERNEL) == ()


def test_a_dkms_package_without_headers_exits_zero_and_builds_nothing(stocked: LabHost) -> None:
    done(stocked, installing("apt", "t", "t", ("nvidia-open",)))
    assert base.module_files(stocked, "nvidia", modules.KERNEL) == ()


def test_a_replaced_driver_comes_back_from_the_packages_put_aside(stocked: LabHost) -> None:
    done(stocked, apt_repository.branch_pin("570"))
    done(stocked, installing("apt", "h", "h", ("linux-headers-amd64", "cuda-drivers")))
    stocked.remove("/etc/apt/preferences.d/bringup-nvidia-branch")
    listed, settings, before = packages(stocked), etc(stocked), APT.snapshot(stocked)
    assert before is not None
    assert before.packages["nvidia-driver"].version == "570.124.06-1"
    action = installing("apt", "t", "t", ("nvidia-open",), may_remove=("cuda-drivers", "nvidia-kernel-dkms"))
    simulation = APT.simulate(action, stocked)
    preflight.check(action, simulation, stocked)
    folder = "/var/lib/bringup/return/1"
    for argv in (
        ("mkdir", "-p", f"{folder}/{base.PARTIAL}"),
        *(keep.ways[0].steps[0] for keep in APT.keeping(simulation, stocked, folder)),
    ):
        assert isinstance(argv, tuple)
        result = start(stocked.machine, argv)
        assert result.returncode == 0, result.stderr
    for file in stocked.machine.path(f"{folder}/{base.PARTIAL}").iterdir():
        file.rename(file.parent.parent / file.name)
    kept = APT.kept(simulation, stocked, folder)
    assert (len(kept.files), kept.lost) == (13, ())
    done(stocked, action)
    # The archive is gone, as it may be on the day of the undo.
    stocked.remove("/etc/apt/sources.list.d/cuda-debian12-x86_64.sources")
    undone(stocked, before, kept)
    assert packages(stocked) == listed
    stocked.remove("/var/lib/bringup/return")
    source = "/etc/apt/sources.list.d/cuda-debian12-x86_64.sources"
    assert etc(stocked) == {path: content for path, content in settings.items() if path != source}


def test_holds_and_automatic_marks_come_back(stocked: LabHost) -> None:
    done(stocked, installing("apt", "t", "t", ("lab-old=1.0",)))
    stocked.machine.run("apt-mark", "auto", "lab-old")
    stocked.machine.run("apt-mark", "hold", "lab-old")
    before = APT.snapshot(stocked)
    assert before is not None
    stocked.machine.run("apt-mark", "unhold", "lab-old")
    done(stocked, installing("apt", "t", "t", ("lab-old=2.0",)))
    undone(stocked, before, base.Kept())
    assert APT.snapshot(stocked) == before


def test_a_configuration_file_that_was_changed_stays_and_nobody_is_asked(stocked: LabHost) -> None:
    done(stocked, installing("apt", "t", "t", ("lab-conffile=1.0",)))
    stocked.write_bytes("/etc/lab-conffile.conf", b"level = mine\n")
    output = done(stocked, installing("apt", "t", "t", ("lab-conffile=1.1",)))
    assert stocked.read("/etc/lab-conffile.conf") == "level = mine\n"
    assert "[default=N]" not in output


def test_a_failed_script_is_named_and_the_repair_is_planned(stocked: LabHost) -> None:
    result = perform(stocked, installing("apt", "t", "t", ("lab-fail",)))
    assert result is not None
    assert result.returncode == 100
    assert APT.cause(result.stdout + result.stderr) == Phrase(key="manager.apt.script", params={"text": "lab-fail"})
    assert APT.installed(stocked, ("lab-fail", "lab-ok")) == {"lab-fail": None, "lab-ok": None}
    assert [argv[0] for argv in APT.repair(stocked)] == ["dpkg", "apt-get"]


# --- locks ----------------------------------------------------------------------------------------


def test_the_holder_of_the_lock_is_named_before_anything_is_tried(stocked: LabHost) -> None:
    assert APT.lock_holder(stocked) is None
    stocked.write_bytes("/etc/lab/seconds", b"20\n")
    argv = stocked.machine.inside("apt-get", "-y", "install", "lab-sleep")
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as other:
        assert other.stdout is not None
        for line in other.stdout:
            if "working 1/" in line:
                break
        holder = APT.lock_holder(stocked)
        result = start(stocked.machine, ("apt-get", "-y", "-o", "DPkg::Lock::Timeout=0", "install", "lab-ok"))
        other.kill()
    assert holder is not None
    assert (holder.lock, holder.name) == ("/var/lib/dpkg/lock-frontend", "apt-get")
    assert APT.busy(result.stdout + result.stderr) == Holder(lock="/var/lib/dpkg/lock-frontend", pid=holder.pid, name="apt-get")


# --- the output scheme ----------------------------------------------------------------------------

_SUPERVISOR = """\
import os, pty, signal, sys
# What the engine does: output straight to the spool file, a terminal only as the controlling one.
child, terminal = pty.fork()
if child == 0:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    spool = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(spool, 1)
    os.dup2(spool, 2)
    os.execvp(sys.argv[2], sys.argv[2:])
while True:
    try:
        if not os.read(terminal, 65536):
            break
    except OSError:
        break
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def supervised(machine: LabMachine, spool: Path, argv: tuple[str, ...]) -> subprocess.Popen[bytes]:
    environment = [f"{name}={value}" for name, value in APT.environment().items()]
    command = machine.argv("python3", "-I", "-c", _SUPERVISOR, str(spool), "chroot", machine.root, "env", *environment, *argv)
    return subprocess.Popen(command, stdin=subprocess.DEVNULL)


def test_no_line_of_a_flood_is_lost(stocked: LabHost, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    with supervised(stocked.machine, spool, APT.argv(installing("apt", "t", "t", ("lab-flood",)))) as child:
        assert child.wait(60) == 0
    lines = [line for line in spool.read_text(encoding="utf-8").splitlines() if line.startswith("CC [M]")]
    assert (len(lines), lines[-1]) == (200_000, "CC [M]  /var/lib/dkms/nvidia/build/file200000.o")


def test_a_killed_supervisor_leaves_apt_to_finish_and_its_output_complete(stocked: LabHost, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    stocked.write_bytes("/etc/lab/seconds", b"3\n")
    with supervised(stocked.machine, spool, APT.argv(installing("apt", "t", "t", ("lab-sleep", "lab-ok")))) as child:
        deadline = time.monotonic() + 30
        while "working 1/3" not in (spool.read_text(encoding="utf-8") if spool.exists() else "") and time.monotonic() < deadline:
            time.sleep(0.05)
        stocked.machine.run("pkill", "-KILL", "-f", "--oldest", str(spool))
        child.wait(10)
        while APT.lock_holder(stocked) is not None and time.monotonic() < deadline:
            time.sleep(0.1)
    text = spool.read_text(encoding="utf-8")
    assert "working 3/3" in text
    assert "Setting up lab-ok" in text
    assert APT.installed(stocked, ("lab-sleep", "lab-ok")) == {"lab-sleep": "1.0", "lab-ok": "1.0"}
    assert APT.repair(stocked) == ()
