"""The engine with real apt and dpkg: nothing lost in a flood, a killed runner, a cancel, and the way back."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from steps.compat import driver_plan
from steps.compat.case import Case
from steps.engine import client, journal
from steps.engine.waiting import processes_of
from steps.host.local import LocalHost
from steps.host.rooted import RootedHost
from steps.managers import apt_repository, apt_state
from steps.managers.base import Snapshot, manager
from steps.model.action import ModuleBuilt, Write, installing
from steps.model.base import Phrase
from steps.model.plan import Target
from steps.model.run import stays
from steps.model.software import Package
from tests.engine_kit import ended, kill_runner, output, plan_of, session_of, statuses, wait_until
from tests.lab import catalogue, modules
from tests.lab.debs import Deb, File, pack
from tests.lab.lab import LabMachine
from tests.test_compat_cases import machine, profile
from tui.reasons import deciding

pytestmark = pytest.mark.lab
ROOT = os.environ.get("LAB_ROOT", "/nonexistent")


# --- what happens beside the root, in the machine's namespaces ---------------------------------------


def install(*packages: str) -> client.RunHandle:
    actions = (*apt_repository.nvidia_repository(catalogue.NVIDIA_URL), installing("apt", "a.install", "t", packages))
    return client.start(plan_of(*actions, root=ROOT), sudo=None)


def snapshot() -> Snapshot:
    found = manager("apt").snapshot(RootedHost(ROOT, LocalHost()))
    assert found is not None
    return found


def person(package: str) -> None:
    """Install as a person would beside the run; dpkg may complain of other packages."""
    subprocess.run(("chroot", ROOT, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-y", "install", package), check=False)


def seconds(count: int) -> None:
    Path(ROOT, "etc/lab").mkdir(exist_ok=True)
    Path(ROOT, "etc/lab/seconds").write_text(f"{count}\n")


def flood() -> None:
    before = snapshot()
    handle = install("lab-flood", "lab-ok")
    state = ended(handle, 120)
    assert (state.status, state.exit) == ("done", 0), (state, output(handle, "a.install")[-2000:])
    lines = [line for line in output(handle, "a.install").splitlines() if line.startswith("CC [M]")]
    assert (len(lines), lines[-1]) == (200_000, "CC [M]  /var/lib/dkms/nvidia/build/file200000.o")
    progress = Path(handle.folder, "output", "a.install.status").read_text()
    assert "pmstatus:lab-ok:" in progress
    handle.undo()
    assert ended(handle, 120).status == "undone"
    assert snapshot() == before


def killed() -> None:
    before = snapshot()
    seconds(4)
    handle = install("lab-sleep", "lab-ok")
    wait_until(handle, lambda _: "working 1/4" in output(handle, "a.install"), 60)
    kill_runner(handle)
    handle.resume()
    state = ended(handle, 120)
    assert (state.status, statuses(state)["a.install"]) == ("done", "already"), (state, output(handle, "a.install"))
    text = output(handle, "a.install")
    assert text.count("working 4/4") == 1
    assert "Setting up lab-ok" in text
    assert "still at work" in text
    handle.undo()
    assert ended(handle, 120).status == "undone"
    assert snapshot() == before


def all_killed() -> None:
    """A power cut as far as processes go: the runner, apt, dpkg and the script at once."""
    seconds(30)
    handle = install("lab-sleep", "lab-ok")
    wait_until(handle, lambda _: "working 1/30" in output(handle, "a.install"), 60)
    session = session_of(handle, "a.install")
    working = tuple(processes_of(session))
    assert len(working) >= 3
    kill_runner(handle)
    for pid in working:
        os.kill(pid, signal.SIGKILL)
    seconds(1)
    handle.resume()
    state = ended(handle, 120)
    assert state.status == "done", (state, output(handle, "a.install"))
    assert "--configure" in output(handle, "a.install"), output(handle, "a.install")


def cancelled() -> None:
    seconds(3)
    handle = install("lab-sleep", "lab-ok")
    wait_until(handle, lambda _: "working 1/3" in output(handle, "a.install"), 60)
    handle.cancel()
    state = ended(handle, 60)
    assert (state.status, state.exit) == ("cancelled", 5)
    assert statuses(state)["a.install"] == "done", (state, output(handle, "a.install"))


def failing() -> None:
    handle = install("lab-fail")
    state = ended(handle, 60)
    error = state.actions["a.install"].error
    assert isinstance(error, Phrase)
    assert (state.status, error.key, error.params["text"]) == ("failed", "manager.apt.script", "lab-fail")
    before = snapshot().packages
    handle.undo()
    assert ended(handle, 60).status == "undone"
    assert "lab-fail" not in snapshot().packages
    assert len(snapshot().packages) < len(before)


def refused() -> None:
    before = snapshot()
    for packages, code in ((("lab-big",), "space-too-small"), (("lab-unmet",), "packages-refused")):
        handle = install(*packages)
        state = ended(handle, 60)
        error = state.actions["a.install"].error
        assert isinstance(error, Phrase)
        assert (state.exit, error.key) == (3, f"error.{code}.sentence")
        entries, _ = journal.read(Path(handle.folder, "journal.jsonl"))
        assert not [entry for entry in entries if entry.kind == "registered" and entry.action == "a.install"]
    assert snapshot() == before


def foreign() -> None:
    """Between two tries a person installs something: it is not ours to take back."""
    handle = install("lab-fail", "lab-old")
    assert ended(handle, 60).status == "failed"
    person("lab-conffile")
    handle.resume()
    assert ended(handle, 60).status == "failed"
    handle.undo()
    assert ended(handle, 60).status == "undone"
    left = snapshot().packages
    assert {name: name in left for name in ("lab-conffile", "lab-old", "lab-fail")} == {
        "lab-conffile": True,
        "lab-old": False,
        "lab-fail": False,
    }


def depended_on() -> None:
    """A person's package rests on one of ours: the undo names it and removes nothing."""
    handle = install("lab-ok")
    assert ended(handle, 60).status == "done"
    Path(ROOT, "root/own.deb").write_bytes(pack(Deb("lab-own", "1.0", relations={"Depends": "lab-ok"})))
    subprocess.run(("chroot", ROOT, "dpkg", "-i", "/root/own.deb"), check=True)
    handle.undo()
    state = ended(handle, 60)
    error = state.actions["a.install"].error
    assert isinstance(error, Phrase)
    assert (state.exit, error.key, error.params["packages"]) == (22, "error.undo-removes.sentence", "lab-own")
    assert {"lab-ok", "lab-own"} <= snapshot().packages.keys()
    subprocess.run(("chroot", ROOT, "dpkg", "--purge", "lab-own"), check=True)
    handle.undo()
    assert ended(handle, 60).status == "undone"
    assert "lab-ok" not in snapshot().packages


def half_done_by_others() -> None:
    """What somebody had unpacked only is configured before anything else can be installed: the undo says that this stays."""
    Path(ROOT, "root/own.deb").write_bytes(pack(Deb("lab-own", "1.0")))
    subprocess.run(("chroot", ROOT, "dpkg", "--unpack", "/root/own.deb"), check=True)
    handle = install("lab-ok")
    assert ended(handle, 60).status == "done", output(handle, "a.install")
    handle.undo()
    state = ended(handle, 60)
    assert (state.status, "lab-ok" in snapshot().packages, snapshot().has("lab-own")) == ("undone", False, True)
    assert stays(handle.plan.actions, state) == Phrase(key="repair.undo.configured")


def by_hand_since() -> None:
    """A person's word since the run counts: a hold is respected, a package asked for stays, an edited file is kept; all are named."""
    handle = install("lab-extra")
    assert ended(handle, 60).status == "done", output(handle, "a.install")
    assert snapshot().packages["lab-tools"].automatic
    person("lab-tools")
    subprocess.run(("chroot", ROOT, "apt-mark", "hold", "lab-extra"), check=True)
    between = snapshot()
    handle.undo()
    state = ended(handle, 60)
    error = state.actions["a.install"].error
    assert isinstance(error, Phrase)
    assert (state.exit, error.key, error.params["packages"]) == (22, "error.undo-held.sentence", "lab-extra")
    assert snapshot() == between
    subprocess.run(("chroot", ROOT, "apt-mark", "unhold", "lab-extra"), check=True)
    Path(ROOT, "etc/lab-extra.conf").write_text("mine\n")
    handle.undo()
    assert ended(handle, 60).status == "undone", output(handle, "a.install")
    left = snapshot().packages
    assert ("lab-extra" in left, left["lab-tools"].automatic) == (False, False)
    told = output(handle, "a.install")
    assert "lab-tools was asked for since and is left alone" in told
    kept = Path(handle.folder, "backup", "a.install", "edited-etc-lab-extra.conf")
    assert (kept.read_text(), f"/etc/lab-extra.conf was changed since; what it held is in {kept}" in told) == ("mine\n", True)


def edited_between_two_undos() -> None:
    """An undo is refused before it changes anything; what a person writes after that is the person's for the next one."""
    old = Deb("lab-extra", "0.5", files={"/etc/lab-extra.conf": File(b"old\n")})
    Path(ROOT, "root/old.deb").write_bytes(pack(old))
    subprocess.run(("chroot", ROOT, "dpkg", "-i", "/root/old.deb"), check=True)
    handle = install("lab-extra=1.0")
    assert ended(handle, 60).status == "done", output(handle, "a.install")
    conf = Path(ROOT, "etc/lab-extra.conf")
    assert conf.read_text() == "extra\n"
    Path(ROOT, "root/own.deb").write_bytes(pack(Deb("lab-own", "1.0", relations={"Depends": "lab-tools"})))
    subprocess.run(("chroot", ROOT, "dpkg", "-i", "/root/own.deb"), check=True)
    handle.undo()
    assert ended(handle, 60).status == "undo-failed"
    conf.write_text("mine\n")
    subprocess.run(("chroot", ROOT, "dpkg", "--purge", "lab-own"), check=True)
    handle.undo()
    assert ended(handle, 60).status == "undone", output(handle, "a.install")
    assert (conf.read_text(), snapshot().packages["lab-extra"].version) == ("mine\n", "0.5")
    assert "/etc/lab-extra.conf was changed since and is left alone" in output(handle, "a.install")


def completed_by_undo() -> None:
    """What could not be unpacked is brought by the repair that an undo begins with; it goes with all the rest, at a second try too."""
    before = snapshot()
    binaries = str(Path(ROOT, "usr/bin"))
    for words in (("--bind", binaries, binaries), ("-o", "remount,ro,bind", binaries)):
        subprocess.run(("mount", *words), check=True)
    handle = install("lab-extra")
    assert ended(handle, 60).status == "failed"
    subprocess.run(("umount", binaries), check=True)
    assert ("lab-extra" in snapshot().packages, snapshot().has("lab-tools")) == (True, False), output(handle, "a.install")
    handle.undo()
    wait_until(handle, lambda _: "Setting up lab-extra" in output(handle, "a.install"), 60)
    kill_runner(handle)
    handle.undo()
    assert ended(handle, 60).status == "undone", output(handle, "a.install")
    assert snapshot() == before


def killed_undo() -> None:
    """An undo is killed at its last command, which goes on: the next one waits for it and says that the packages are taken back."""
    before = snapshot()
    handle = install("lab-ok")
    assert ended(handle, 60).status == "done"
    handle.undo()
    wait_until(handle, lambda _: "--purge lab-ok" in output(handle, "a.install"), 60)
    kill_runner(handle)
    handle.undo()
    state = ended(handle, 60)
    assert (state.status, statuses(state)["a.install"]) == ("undone", "undone"), (state, output(handle, "a.install"))
    assert snapshot() == before


def interrupted() -> None:
    """The manager is killed under a runner that lives, as by the kernel for want of memory: a resume mends dpkg first."""
    seconds(30)
    handle = install("lab-sleep", "lab-ok")
    wait_until(handle, lambda _: "working 1/30" in output(handle, "a.install"), 60)
    for pid in processes_of(session_of(handle, "a.install")):
        os.kill(pid, signal.SIGKILL)
    assert ended(handle, 60).status == "failed"
    seconds(1)
    handle.resume()
    assert ended(handle, 60).status == "done", output(handle, "a.install")


def half_there() -> client.RunHandle:
    """Return a run that failed with a package unpacked whose dependency could not be: what stood in its way is gone since."""
    Path(ROOT, "root/own.deb").write_bytes(pack(Deb("lab-own", "1.0", files={"/usr/bin/lab-tool": File(b"own\n", 0o755)})))
    subprocess.run(("chroot", ROOT, "dpkg", "-i", "/root/own.deb"), check=True)
    handle = install("lab-extra")
    assert ended(handle, 60).status == "failed"
    subprocess.run(("chroot", ROOT, "dpkg", "--purge", "--force-depends", "lab-own"), check=True)
    there = snapshot().packages
    assert ("lab-extra" in there, "lab-tools" in there) == (True, False), output(handle, "a.install")
    return handle


def brought_by_an_undo() -> None:
    """The repair that an undo begins with fetches what a package that it will take back needs: that goes too."""
    before = snapshot()
    handle = half_there()
    handle.undo()
    assert ended(handle, 60).status == "undone", output(handle, "a.install")
    assert "Setting up lab-tools" in output(handle, "a.install")
    assert snapshot() == before


def killed_repair() -> None:
    """The runner is killed in the repair of an earlier try, which goes on: what it brings is the run's all the same."""
    before = snapshot()
    handle = half_there()
    handle.resume()
    wait_until(handle, lambda _: "-f install" in output(handle, "a.install"), 60)
    kill_runner(handle)
    handle.resume()
    assert ended(handle, 120).status == "done", output(handle, "a.install")
    handle.undo()
    assert ended(handle, 60).status == "undone", output(handle, "a.install")
    assert snapshot() == before


def waited_for() -> None:
    """Somebody else has the manager: it is waited for, and then simulated again."""
    # On an overlay the kernel's table of locks gives no sure device: the name of the holder has to speak.
    Path("/proc/self/comm").write_text("unattended-upgr")
    with Path(ROOT, "var/lib/dpkg/lock-frontend").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        handle = install("lab-ok")
        held = f"waiting for unattended-upgr (process {os.getpid()}), which holds /var/lib/dpkg/lock-frontend"
        wait_until(handle, lambda _: held in output(handle, "repository.refresh"), 60)
    state = ended(handle, 60)
    assert state.status == "done", output(handle, "a.install")
    assert "[bringup: 1 new, 0 replaced, 0 removed, fetches " in output(handle, "a.install")


def mounted() -> None:
    """In a mounted system the person's files are the person's, and a link of theirs leads root nowhere."""
    os.environ["SUDO_UID"] = "65534"
    home = Path(ROOT, "home/ana")
    home.mkdir(parents=True)
    os.chown(home, 65534, 65534)
    (home / "linked").symlink_to("/etc/owned-by-root")
    first = Write(id="a.own", title="t", by="user", path="/home/ana/.config/deep/conf", text="x")
    second = Write(id="b.led", title="t", by="user", path="/home/ana/linked", text="x", lane="files")
    handle = client.start(plan_of(first, second, root=ROOT), sudo=None)
    state = ended(handle, 60)
    assert statuses(state) == {"a.own": "done", "b.led": "failed"}, (state, output(handle, "a.own"))
    assert {path.lstat().st_uid for path in (home / ".config").rglob("*")} | {(home / ".config").stat().st_uid} == {65534}
    assert not Path(ROOT, "etc/owned-by-root").exists()
    handle.undo()
    assert ended(handle, 60).status == "undone", handle.state()
    assert [path.name for path in home.iterdir()] == ["linked"]


def headless() -> None:
    """A module's package without the kernel's headers ends well and builds nothing: the run says which headers are missing."""
    built = ModuleBuilt(module="nvidia", kernel=modules.KERNEL)
    driver = installing("apt", "a.install", "t", ("nvidia-open",), done_when=(built,))
    handle = client.start(plan_of(*apt_repository.nvidia_repository(catalogue.NVIDIA_URL), driver, root=ROOT), sudo=None)
    state = ended(handle, 60)
    error = state.actions["a.install"].error
    assert isinstance(error, Phrase)
    assert (state.status, error.key, error.params["kernel"]) == ("failed", "engine.failed.no-headers", modules.KERNEL)


def held() -> None:
    """What a person has held back is not changed: it is said before anything begins, and with the hold gone the run goes on."""
    Path(ROOT, "root/old.deb").write_bytes(pack(Deb("lab-ok", "0.5")))
    for argv in (("dpkg", "-i", "/root/old.deb"), ("apt-mark", "hold", "lab-ok")):
        subprocess.run(("chroot", ROOT, *argv), check=True)
    before = snapshot()
    handle = install("lab-ok=1.0")
    state = ended(handle, 60)
    error = state.actions["a.install"].error
    assert isinstance(error, Phrase)
    assert (state.exit, error.key, error.params["packages"]) == (3, "error.packages-held.sentence", "lab-ok")
    assert snapshot() == before
    subprocess.run(("chroot", ROOT, "apt-mark", "unhold", "lab-ok"), check=True)
    before = snapshot()
    handle.resume()
    assert ended(handle, 120).status == "done", output(handle, "a.install")
    kept = Path(ROOT, "var/lib/bringup/return", handle.id)
    assert [path.name for path in kept.rglob("*.deb")] == ["lab-ok_0.5_all.deb"]
    handle.undo()
    assert ended(handle, 120).status == "undone", output(handle, "a.install")
    assert (snapshot(), kept.exists()) == (before, False)


def contradicted() -> None:
    """Apt is broken when the run is to be taken back: its own words are said, and none of the installation's."""
    before = snapshot()
    handle = install("lab-ok", "lab-fail")
    assert ended(handle, 60).status == "failed"
    assert any("lab-fail" in line for line in why(handle))
    extra = Path(ROOT, "etc/apt/sources.list.d/other.sources")
    extra.write_text(f"Types: deb\nURIs: {catalogue.NVIDIA_URL}\nSuites: /\nSigned-By: /usr/share/keyrings/other.gpg\n")
    handle.undo()
    state = ended(handle, 60)
    error = state.actions["a.install"].error
    assert isinstance(error, Phrase)
    assert (state.exit, error.key) == (22, "manager.apt.signed-by-twice"), (state, output(handle, "a.install")[-2000:])
    told = " ".join(why(handle))
    assert "Conflicting values set for option Signed-By" in told
    assert "lab-fail" not in told
    extra.unlink()
    handle.undo()
    assert ended(handle, 60).status == "undone", output(handle, "a.install")[-2000:]
    assert snapshot() == before


def why(handle: client.RunHandle) -> tuple[str, ...]:
    return deciding(output(handle, "a.install").splitlines())


def offline() -> None:
    """A driver is changed, and the archive is gone: the undo brings back the old one with its module, from what was put aside."""
    built = ModuleBuilt(module="nvidia", kernel=modules.KERNEL)
    old = installing("apt", "a.old", "t", ("linux-headers-amd64", "cuda-drivers=570.*"), done_when=(built,))
    pin = apt_repository.branch_pin("570")
    first = client.start(plan_of(*apt_repository.nvidia_repository(catalogue.NVIDIA_URL), pin, old, root=ROOT), sudo=None)
    assert ended(first, 120).status == "done", output(first, "a.old")
    Path(ROOT, pin.path.lstrip("/")).unlink()
    for archive in Path(ROOT, "var/cache/apt/archives").glob("*.deb"):
        archive.unlink()
    # The archive has nothing of the old branch any more: it has to be built again from its files.
    Path("/run/lab").mkdir(exist_ok=True)
    Path("/run/lab/network").write_text("missing _570.124.06")
    before = snapshot()
    new = installing("apt", "b.new", "t", ("nvidia-open=580.*",), may_remove=("cuda-drivers", "nvidia-kernel-dkms"), done_when=(built,))
    second = client.start(plan_of(new, root=ROOT), sudo=None)
    assert ended(second, 240).status == "done", output(second, "b.new")
    module = Path(ROOT, f"lib/modules/{modules.KERNEL}/updates/dkms/nvidia.ko")
    assert module.read_bytes() == modules.module("580.82.07", modules.OPEN)
    Path("/run/lab/network").write_text("refuse ")
    second.undo()
    assert ended(second, 240).status == "undone", (second.state(), output(second, "b.new")[-3000:])
    assert snapshot() == before
    assert module.read_bytes() == modules.module("570.124.06")


def older() -> None:
    """The driver that went wrong is taken back to the branch before it, as it is planned; undo goes forward again."""
    built = ModuleBuilt(module="nvidia", kernel=modules.KERNEL)
    new = installing("apt", "a.new", "t", ("linux-headers-amd64", "nvidia-open=580.*"), done_when=(built,))
    first = client.start(plan_of(*apt_repository.nvidia_repository(catalogue.NVIDIA_URL), new, root=ROOT), sudo=None)
    assert ended(first, 120).status == "done", output(first, "a.new")
    before = snapshot()
    there = tuple(Package(name=name, version=row.version) for name, row in before.packages.items() if "nvidia" in name)
    here = machine("t4", system="debian 12", kernel=modules.KERNEL, driver="580.82.07")
    here = msgspec.structs.replace(here, driver=msgspec.structs.replace(here.driver, packages=there))
    answers = profile(driver_branch="570", driver_flavor="open", driver_source="nvidia-repo")
    actions = driver_plan.plan(Case(here, answers), Target(root=ROOT, kernel=modules.KERNEL))
    second = client.start(plan_of(*actions, root=ROOT), sudo=None)
    assert ended(second, 240).status == "done", output(second, "driver.install")
    module = Path(ROOT, f"lib/modules/{modules.KERNEL}/updates/dkms/nvidia.ko")
    assert module.read_bytes() == modules.module("570.124.06", modules.OPEN)
    versions = {
        row.version
        for name, row in snapshot().packages.items()
        if name in before.packages and before.packages[name].version == "580.82.07-1"
    }
    assert versions == {"570.124.06-1"}
    second.undo()
    assert ended(second, 240).status == "undone", (second.state(), output(second, "driver.install")[-3000:])
    assert snapshot() == before
    assert module.read_bytes() == modules.module("580.82.07", modules.OPEN)


def left_out() -> None:
    """A package that cannot be configured is left out: it is taken back first, so that what comes after it can be installed."""
    before = snapshot()
    actions = apt_repository.nvidia_repository(catalogue.NVIDIA_URL)
    bad, good = installing("apt", "a.bad", "t", ("lab-dep-of-fail",)), installing("apt", "b.good", "t", ("lab-ok",))
    handle = client.start(plan_of(*actions, bad, good, root=ROOT), sudo=None)
    assert ended(handle, 60).status == "failed"
    assert apt_state.unfinished(RootedHost(ROOT, LocalHost())) == ("lab-dep-of-fail", "lab-fail")
    handle.skip("a.bad")
    state = ended(handle, 120)
    assert (state.status, state.exit, statuses(state)["a.bad"], statuses(state)["b.good"]) == ("done", 1, "skipped", "done"), (
        state,
        output(handle, "a.bad")[-3000:],
    )
    assert apt_state.unfinished(RootedHost(ROOT, LocalHost())) == ()
    assert snapshot().packages.keys() - before.packages.keys() == {"lab-ok"}
    handle.undo()
    assert ended(handle, 120).status == "undone"
    assert snapshot() == before


_SCENES = (
    flood,
    killed,
    all_killed,
    cancelled,
    failing,
    refused,
    foreign,
    depended_on,
    half_done_by_others,
    by_hand_since,
    edited_between_two_undos,
    completed_by_undo,
    killed_undo,
    interrupted,
    brought_by_an_undo,
    killed_repair,
    waited_for,
    mounted,
    headless,
    held,
    contradicted,
    offline,
    older,
    left_out,
)
SCENES = {scene.__name__: scene for scene in _SCENES}


# --- what pytest sees --------------------------------------------------------------------------------


@pytest.mark.parametrize("scene", SCENES)
def test_with_real_apt(scene: str, machine: LabMachine) -> None:
    ran = machine.run(sys.executable, "-m", "tests.lab.test_engine_apt", scene, inside=False, env={"SUDO_UID": ""})
    assert ran.returncode == 0, ran.stdout + ran.stderr


if __name__ == "__main__":
    SCENES[sys.argv[1]]()
