"""Fetching ahead with real apt: archives in the cache, dpkg free all the while, given up for a run, and gone with its program."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from steps.engine import client
from steps.headless import ahead
from steps.host.local import LocalHost
from steps.host.rooted import RootedHost
from steps.managers.apt_state import LOCKS, lock_holder
from steps.managers.base import Holder
from steps.model.action import Packages, installing
from tests.engine_kit import ended, output, plan_of, wait_until
from tests.lab import catalogue
from tests.lab.lab import LabMachine

pytestmark = pytest.mark.lab
ROOT = os.environ.get("LAB_ROOT", "/nonexistent")
ARCHIVES = Path(ROOT, "var/cache/apt/archives")
_LARGE = "lab-unpack"


# --- what happens beside the root, in the machine's namespaces ---------------------------------------


def known() -> None:
    """Let apt know of the lab's repository, as a machine knows of its own archive."""
    Path(ROOT, "etc/apt/sources.list.d/lab.list").write_text(f"deb [trusted=yes] {catalogue.NVIDIA_URL} /\n")
    subprocess.run(("chroot", ROOT, "apt-get", "-q", "update"), check=True)


def slow(kilobytes: int) -> None:
    """Let apt fetch no faster than this."""
    Path(ROOT, "etc/apt/apt.conf.d/99slow").write_text(f'Acquire::http::Dl-Limit "{kilobytes}";\nAcquire::https::Dl-Limit "{kilobytes}";\n')


def holder() -> Holder | None:
    """Return who holds a lock of apt's or dpkg's."""
    return lock_holder(RootedHost(ROOT, LocalHost()))


def install(*packages: str) -> Packages:
    return installing("apt", "a.install", "t", packages)


def fetch(*packages: str) -> client.RunHandle:
    """Fetch what a plan of these packages needs."""
    return client.start(ahead.plan_of(plan_of(install(*packages), root=ROOT), root=True), sudo=None)


def fetching(*packages: str) -> client.RunHandle:
    """Return a fetch that has begun and will take long."""
    slow(1)
    handle = fetch(*packages)
    wait_until(handle, lambda _: (found := holder()) is not None and "archives" in found.lock, 60)
    return handle


def nothing_is_left(handle: client.RunHandle) -> None:
    """See that nothing of a fetch works any more, and that every lock is free."""
    assert not handle.alive()
    assert holder() is None
    said = subprocess.run(("ps", "-eo", "args"), capture_output=True, text=True, check=True).stdout
    assert "--download-only" not in said, said


def fetched() -> None:
    """The files are in apt's cache, and the run that follows fetches nothing."""
    before = Path(ROOT, "var/lib/dpkg/status").read_bytes()
    handle = fetch("lab-ok", "lab-old")
    state = ended(handle, 120)
    assert (state.status, state.actions["ahead.a.install"].status) == ("done", "done"), output(handle, "ahead.a.install")
    assert {path.name.partition("_")[0] for path in ARCHIVES.glob("*.deb")} >= {"lab-ok", "lab-old"}
    assert Path(ROOT, "var/lib/dpkg/status").read_bytes() == before
    assert not Path(ROOT, "var/cache/bringup/ahead/status").exists()
    run = client.start(plan_of(install("lab-ok", "lab-old"), root=ROOT), sudo=None)
    assert ended(run, 120).status == "done", output(run, "a.install")
    text = output(run, "a.install")
    assert "Need to get 0 B" in text, text
    assert "Get:1 " not in text


def free() -> None:
    """While it fetches, dpkg is anybody's: a person installs a package, and it fetches while a person holds dpkg."""
    fetching(_LARGE)
    found = holder()
    assert found is not None
    assert found.lock == LOCKS[3]
    for name in LOCKS[:2]:
        with Path(ROOT, name.lstrip("/")).open("w") as lock:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    client.stop_ahead()
    slow(0)
    with Path(ROOT, "var/lib/dpkg/lock-frontend").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        second = fetch("lab-ok")
        assert ended(second, 120).actions["ahead.a.install"].status == "done", output(second, "ahead.a.install")


def changed() -> None:
    """Answers change: the first fetch is stopped, as the wizard does it, and the second has the lock."""
    first = fetching(_LARGE)
    client.stop_ahead()
    nothing_is_left(first)
    assert first.state().status == "cancelled"
    slow(0)
    second = fetch("lab-ok")
    assert ended(second, 120).actions["ahead.a.install"].status == "done", output(second, "ahead.a.install")
    assert list(ARCHIVES.glob("lab-ok_*.deb"))
    assert not list(ARCHIVES.glob(f"{_LARGE}_*.deb"))
    nothing_is_left(second)


def given_way() -> None:
    """A run begins: it stops the fetch at once and has the whole machine."""
    handle = fetching(_LARGE)
    slow(0)
    began = time.monotonic()
    run = client.start(plan_of(install("lab-ok"), root=ROOT), sudo=None)
    assert time.monotonic() - began < 25
    assert ended(run, 120).status == "done", output(run, "a.install")
    assert "waiting for" not in output(run, "a.install")
    nothing_is_left(handle)


def waited() -> None:
    """A fetch that is not ours to stop is waited for by name."""
    handle = fetching(_LARGE)
    slow(0)
    stopping = client.stop_ahead
    # Somebody else's fetch hears nothing of ours.
    client.stop_ahead = lambda: None
    run = client.start(plan_of(install("lab-ok"), root=ROOT), sudo=None)
    wait_until(run, lambda _: "which holds /var/cache/apt/archives/lock" in output(run, "a.install"), 60)
    threading.Thread(target=stopping).start()
    assert ended(run, 120).status == "done", output(run, "a.install")
    assert not handle.alive()


def closed() -> None:
    """The program that it belongs to is killed: half a second later nothing works and nothing is locked."""
    slow(1)
    program = "import sys, tests.lab.test_ahead as lab; lab.fetching(lab._LARGE); print('begun', flush=True); sys.stdin.read()"
    with subprocess.Popen((sys.executable, "-c", program), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "begun\n"
        (handle,) = client._ahead()
        assert handle.alive()
        owner.kill()
    assert ended(handle, 30).status == "cancelled"
    nothing_is_left(handle)


_SCENES = (fetched, free, changed, given_way, waited, closed)
SCENES = {scene.__name__: scene for scene in _SCENES}
_LONG = ("free", "changed", "waited")
"""Scenes of locks and timing that a change seldom touches; the others run every time."""


# --- what pytest sees --------------------------------------------------------------------------------


@pytest.mark.parametrize("scene", [pytest.param(one, marks=[pytest.mark.long] if one in _LONG else []) for one in SCENES])
def test_with_real_apt(scene: str, machine: LabMachine) -> None:
    ran = machine.run(sys.executable, "-m", "tests.lab.test_ahead", scene, inside=False, env={"SUDO_UID": ""})
    assert ran.returncode == 0, ran.stdout + ran.stderr


if __name__ == "__main__":
    known()
    SCENES[sys.argv[1]]()
