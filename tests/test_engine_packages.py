"""What is known of packages before, between and after the tries of an action; real apt is in tests/lab."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from steps.engine.package_notes import PackagesBefore, changed
from steps.engine.packages import Progress
from steps.errors import PreflightError
from steps.host.base import Result
from steps.managers import apt_state
from steps.managers.apt import Apt
from steps.managers.base import Change, Installed, Kept, Simulation, Snapshot
from steps.managers.preflight import check_return
from steps.model.action import Packages
from steps.model.base import Phrase
from tests.test_managers import Answers

ACTION = Packages(id="a.install", title="t", manager="apt", install=("driver",))


def snapshot(**packages: Installed) -> Snapshot:
    return Snapshot(manager="apt", packages=packages)


def state(*names: str, **packages: Installed) -> PackagesBefore:
    return PackagesBefore(before=snapshot(**packages), kept=Kept(), folder="/kept", names=names)


def test_ours_is_what_we_named_and_what_changed() -> None:
    before = state("driver", "libs", "never", libs=Installed(version="1"), other=Installed(version="1"))
    after = snapshot(driver=Installed(version="2"), libs=Installed(version="2"), other=Installed(version="2"))
    assert changed(before, after) == {"driver", "libs"}
    assert changed(before, None) == {"driver", "libs", "never"}


def test_the_way_back_leaves_alone_what_is_not_ours() -> None:
    before = snapshot(libs=Installed(version="1"), other=Installed(version="1"))
    now = snapshot(driver=Installed(version="2"), libs=Installed(version="2"), other=Installed(version="2"), nginx=Installed(version="1"))
    transaction, purge, mark = Apt().restore(before, now, Kept(), frozenset(("driver", "libs")))
    assert transaction[transaction.index("install") + 1 :] == ("libs=1", "driver-")
    assert (purge, mark) == (("dpkg", "--purge", "driver"), ("apt-mark", "manual", "libs"))


def test_a_way_back_that_would_remove_more_is_refused_with_the_names() -> None:
    told = "Remv driver [2]\nRemv nvtop [1]\n0 upgraded, 0 newly installed, 2 to remove and 0 not upgraded.\n"
    host = Answers({"apt-get": Result(stdout=told, status=0)})
    (transaction, *_) = Apt().restore(snapshot(), snapshot(driver=Installed(version="2")), Kept(), frozenset(("driver",)))
    simulation = Apt().foresee(transaction, host)
    assert simulation.removed == ("driver", "nvtop")
    with pytest.raises(PreflightError) as caught:
        check_return(ACTION, simulation, frozenset(("driver",)))
    assert (caught.value.code, caught.value.params["packages"]) == ("undo-removes", "nvtop")
    check_return(ACTION, simulation, frozenset(("driver", "nvtop")))


@pytest.mark.parametrize(("status", "key"), [(127, "engine.failed.missing"), (None, "manager.apt.silent")])
def test_a_manager_that_is_not_there_or_does_not_answer_is_said_to_be_so(status: int | None, key: str) -> None:
    host = Answers({"apt-get": Result(status=status)})
    for problem in (apt_state.simulate(ACTION, host).problem, apt_state.foresee(("apt-get", "install", "libs=1"), host).problem):
        assert isinstance(problem, Phrase)
        assert problem.key == key


def test_a_way_back_never_removes_what_is_protected() -> None:
    simulation = Simulation(changes=(Change(name="linux-image-6.8.0-50-generic", before="1"),))
    with pytest.raises(PreflightError) as caught:
        check_return(ACTION, simulation, frozenset(simulation.removed), kernel="6.8.0-50-generic")
    assert caught.value.code == "removal-protected"


@pytest.mark.parametrize(
    ("name", "goes"), [("xserver-xorg-core", True), ("systemd-sysv", True), ("network-manager", False), ("grub-pc", False)]
)
def test_a_display_server_that_came_with_a_driver_goes_with_it_and_what_the_machine_is_reached_by_stays(name: str, goes: bool) -> None:
    simulation = Simulation(changes=(Change(name=name, before="1"), Change(name="driver", before="2")))
    if goes:
        check_return(ACTION, simulation, frozenset(simulation.removed))
    with pytest.raises(PreflightError):
        check_return(ACTION, simulation, frozenset(("driver",) if goes else simulation.removed))


def test_a_purge_is_foreseen_by_its_names_and_a_mark_changes_nothing() -> None:
    assert apt_state.foresee(("dpkg", "--purge", "a", "b"), Answers()).removed == ("a", "b")
    assert apt_state.foresee(("apt-mark", "auto", "a"), Answers()) == Simulation()


def test_the_repair_removes_nothing() -> None:
    assert "--no-remove" in Apt().repair(Answers())[1]


def test_the_install_does_not_wait_for_the_lock_by_itself() -> None:
    words = Apt().argv(ACTION, status_fd=9)
    assert [word for word in words if word.startswith("DPkg::Lock")][-1] == "DPkg::Lock::Timeout=0"


def test_unpacking_is_seen_after_hours_of_download_and_never_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "status"
    path.write_bytes(b"pmstatus:of an earlier try\n")
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
    progress = Progress(descriptor)
    os.write(descriptor, b"dlstatus:1:12.5:Retrieving file 1 of 2\n" * 80_000)
    assert progress.only_downloads()
    os.write(descriptor, b"pmsta")
    assert progress.only_downloads()
    os.write(descriptor, b"tus:driver:50:Unpacking\n")
    assert not progress.only_downloads()
    os.write(descriptor, b"dlstatus:1:99:x\n" * 80_000)
    assert not progress.only_downloads()
    os.close(descriptor)
