"""The settings around a change of packages: put back where the run changed them, left alone where somebody else did."""

from __future__ import annotations

from pathlib import Path

import pytest

from steps.engine import settings
from steps.engine.context import Context
from steps.engine.folder import Origin, RunFolder, invoking_owner
from steps.engine.journal import Journal
from steps.engine.settings import Settings
from steps.managers.apt import Apt
from steps.model.action import Packages, Write
from tests.engine_kit import plan_of
from tests.test_managers import Answers

ACTION = Packages(id="a.install", title="t", manager="apt", install=("driver",))
OURS = Write(id="b.write", title="t", path="/etc/modprobe.d/ours.conf", text="x")


class Apt1(Apt):
    def settings_of(self, names: tuple[str, ...], host: object) -> tuple[str, ...]:
        return ("/etc/driver.conf",)


class Machine:
    """A system below a folder, and a run on it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.host = Answers()
        self.host.root = str(self.root)
        run = RunFolder(folder / "run")
        for path in (run.path, run.path / "output", run.backup, self.root):
            path.mkdir()
        plan = plan_of(ACTION, OURS, root=str(self.root))
        owner = invoking_owner()
        origin = Origin(digest="", owner=owner)
        self.context = Context(run, plan=plan, origin=origin, host=self.host, outside=self.host, journal=Journal(run.journal, owner.gid))

    def write(self, path: str, text: str) -> None:
        at = self.root / path.lstrip("/")
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text(text)

    def read(self, path: str) -> str | None:
        at = self.root / path.lstrip("/")
        return at.read_text() if at.exists() else None

    def seen(self) -> Settings:
        return settings.seen(ACTION, self.context, Apt1(), ("driver",))

    def undo(self) -> tuple[str, ...]:
        found = settings.register_undo(ACTION, self.context, self.seen())
        return settings.put_back(ACTION, self.context, found, self.seen())


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    made.write("/etc/modprobe.d/nvidia.conf", "options nvidia old\n")
    made.write("/etc/default/grub", "GRUB_TIMEOUT=5\n")
    made.write("/etc/driver.conf", "by a person\n")
    (made.root / "etc/modprobe.d/link.conf").symlink_to("nowhere")
    return made


def test_what_the_change_wrote_removed_or_left_beside_is_put_back(machine: Machine) -> None:
    settings.register(ACTION, machine.context, machine.seen())
    machine.write("/etc/modprobe.d/nvidia.conf", "options nvidia new\n")
    machine.write("/etc/modprobe.d/blacklist.conf", "blacklist nouveau\n")
    machine.write("/etc/driver.conf.dpkg-dist", "of the package\n")
    machine.write("/etc/modprobe.d/ours.conf", "has a way back of its own\n")
    (machine.root / "etc/default/grub").unlink()
    settings.register_after(ACTION, machine.context, machine.seen())
    assert machine.undo() == ()
    assert machine.read("/etc/modprobe.d/nvidia.conf") == "options nvidia old\n"
    assert machine.read("/etc/default/grub") == "GRUB_TIMEOUT=5\n"
    assert machine.read("/etc/modprobe.d/blacklist.conf") is None
    assert machine.read("/etc/driver.conf.dpkg-dist") is None
    assert machine.read("/etc/modprobe.d/ours.conf") == "has a way back of its own\n"


def test_what_somebody_changed_since_is_left_alone_and_named(machine: Machine) -> None:
    settings.register(ACTION, machine.context, machine.seen())
    machine.write("/etc/modprobe.d/nvidia.conf", "options nvidia new\n")
    settings.register_after(ACTION, machine.context, machine.seen())
    machine.write("/etc/modprobe.d/nvidia.conf", "options nvidia mine\n")
    machine.write("/etc/apt/sources.list.d/mine.list", "deb http://x /\n")
    assert machine.undo() == ("/etc/apt/sources.list.d/mine.list", "/etc/modprobe.d/nvidia.conf")
    assert machine.read("/etc/modprobe.d/nvidia.conf") == "options nvidia mine\n"


def test_between_two_tries_a_persons_change_is_told_from_a_repairs(machine: Machine) -> None:
    settings.register(ACTION, machine.context, machine.seen())
    machine.write("/etc/modprobe.d/nvidia.conf", "options nvidia new\n")
    settings.register_after(ACTION, machine.context, machine.seen())
    machine.write("/etc/default/grub", "GRUB_TIMEOUT=9\n")
    settings.claim(ACTION, machine.context, machine.seen())
    machine.write("/etc/driver.conf.dpkg-dist", "of the repair\n")
    settings.register(ACTION, machine.context, machine.seen())
    settings.register_after(ACTION, machine.context, machine.seen())
    assert machine.undo() == ()
    assert machine.read("/etc/modprobe.d/nvidia.conf") == "options nvidia old\n"
    assert machine.read("/etc/default/grub") == "GRUB_TIMEOUT=9\n"
    assert machine.read("/etc/driver.conf.dpkg-dist") is None


def test_a_change_that_was_cut_off_is_the_runs_own(machine: Machine) -> None:
    settings.register(ACTION, machine.context, machine.seen())
    machine.write("/etc/modprobe.d/nvidia.conf", "options nvidia half\n")
    assert machine.undo() == ()
    assert machine.read("/etc/modprobe.d/nvidia.conf") == "options nvidia old\n"


def test_the_file_of_the_settings_is_for_its_owner_alone(machine: Machine) -> None:
    settings.register(ACTION, machine.context, machine.seen())
    kept = machine.context.folder.kept(ACTION.id) / "settings.json"
    assert kept.stat().st_mode & 0o077 == 0
