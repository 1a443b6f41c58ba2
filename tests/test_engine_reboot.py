"""Before a reboot a unit is armed that goes on after it; after it the run knows by the boot's number, and looks at the kernel."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

from steps import text
from steps.engine import reboot
from steps.engine.context import Context
from steps.engine.folder import Origin, Owner, RunFolder, create, invoking_owner
from steps.engine.groups import gained, groups_of
from steps.engine.journal import Journal, fold
from steps.host.base import Result
from steps.host.local import BOOT_MENU, LocalHost
from steps.model.action import ModuleBuilt, Reboot, Run
from steps.model.base import Phrase
from steps.model.plan import digest
from steps.model.run import Entry
from tests.engine_kit import plan_of

REBOOT = Reboot(id="driver.reboot", title="t", reason="r")
INSTALL = Run(id="driver.install", title="t", argv=("true",), done_when=(ModuleBuilt(module="nvidia"),))


class Machine(LocalHost):
    """A machine whose units, kernel and boot menu are made up; it remembers what systemctl was asked."""

    def __init__(self, *, kernel: str = "6.8.0-51-generic", refuses: str = "", modules: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.kernel, self.refuses, self.modules = kernel, refuses, modules
        self.asked: list[str] = []
        self.files: dict[str, str] = {}

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0) -> Result:
        if argv == BOOT_MENU:
            return Result(stdout=json.dumps({"entries": [{"kernel": "6.8.0-51-generic", "default": True}]}), status=0)
        self.asked.append(" ".join(argv[1:]))
        return Result(status=1 if self.refuses and self.refuses in argv else 0)

    def read(self, path: str) -> str | None:
        return f"{self.kernel}\n" if path.endswith("osrelease") else self.files.get(path)

    def exists(self, path: str) -> bool | None:
        return path in self.files

    def glob(self, pattern: str) -> tuple[str, ...]:
        return tuple(path for path in self.modules if f"/lib/modules/{self.kernel}/" in pattern + "/" and self.kernel in path)

    def write_bytes(self, path: str, data: bytes, mode: int = 0o644) -> None:
        self.files[path] = data.decode()

    def remove(self, path: str) -> None:
        self.files.pop(path, None)


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> Iterator[Context]:
    with tempfile.TemporaryDirectory(prefix="bringup test %") as state:
        monkeypatch.setenv("BRINGUP_STATE", state)
        monkeypatch.setattr(reboot, "_has_systemd", lambda: True)
        plan = plan_of(INSTALL, REBOOT)
        folder = create(plan, Origin(digest=digest(plan), owner=invoking_owner()))
        host = Machine()
        yield Context(
            folder, plan=plan, origin=folder.read_origin(), host=host, outside=host, journal=Journal(folder.journal, invoking_owner().gid)
        )


def machine_of(context: Context) -> Machine:
    assert isinstance(context.outside, Machine)
    return context.outside


def on_another_boot(context: Context) -> None:
    """Make the entry that asked for the reboot one of another boot."""
    entries = [entry for entry in context.journal.entries if entry.kind == "reboot-needed"]
    told = {**entries[-1].data, "boot_id": "another"}
    context.journal.append("reboot-needed", REBOOT.id, **told)


def test_the_unit_is_written_enabled_and_named_before_the_reboot_is_asked_for(context: Context) -> None:
    assert reboot.perform_reboot(REBOOT, context).status == "reboot"
    host, name = machine_of(context), reboot.unit_name(context.folder)
    assert host.asked == [f"enable {name}"]
    unit = host.files[f"/etc/systemd/system/{name}"]
    assert "Type=exec" in unit
    assert "KillMode=process" in unit
    assert fold(context.journal.entries).unit == name
    # A second look asks for nothing anew.
    assert reboot.perform_reboot(REBOOT, context).status == "reboot"
    assert len(host.asked) == 1


def test_systemd_reads_back_every_word_of_the_unit(context: Context) -> None:
    unit = reboot.unit_text(context.folder, ("/opt/a b/python", '$HOME "x" 50%'), {"PATH": "/bin", "HOME": "/root", "SECRET": "no"})
    start = re.search(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    assert start is not None
    assert start[1] == r'"/opt/a b/python" "$$HOME \"x\" 50%%"'
    assert 'Environment="PATH=/bin"' in unit
    assert "SECRET" not in unit
    assert 'RequiresMountsFor="/opt/a b/python" "' in unit  # a home folder of the network comes late
    assert f"ConditionPathExists={str(context.folder.plan).replace('%', '%%')}" in unit


def test_where_no_unit_can_be_enabled_none_is_left_and_a_person_goes_on(context: Context) -> None:
    machine_of(context).refuses = "enable"
    assert reboot.perform_reboot(REBOOT, context).status == "reboot"
    assert machine_of(context).files == {}
    assert fold(context.journal.entries).unit is None


def test_the_end_of_a_run_takes_its_unit_away(context: Context) -> None:
    reboot.perform_reboot(REBOOT, context)
    reboot.disarm(context)
    assert machine_of(context).files == {}
    assert machine_of(context).asked[1:] == [f"disable {reboot.unit_name(context.folder)}"]
    reboot.disarm(context)
    assert len(machine_of(context).asked) == 2


@pytest.mark.parametrize(
    ("kernel", "modules", "status"),
    [
        ("6.8.0-51-generic", (), "done"),
        ("6.8.0-45-generic", ("/lib/modules/6.8.0-45-generic/updates/dkms/nvidia.ko",), "done"),
        ("6.8.0-45-generic", (), "failed"),
        ("", (), "done"),
    ],
)
def test_another_kernel_than_expected_is_said_and_stops_the_run_where_it_has_no_driver(
    context: Context, kernel: str, modules: tuple[str, ...], status: str
) -> None:
    reboot.perform_reboot(REBOOT, context)
    on_another_boot(context)
    host = machine_of(context)
    host.kernel, host.modules = kernel, modules
    outcome = reboot.perform_reboot(REBOOT, context)
    assert outcome.status == status
    said = context.folder.output(REBOOT.id).read_text()
    assert f"[bringup: kernel {kernel or '?'} came up]" in said
    assert ("6.8.0-51-generic was expected" in said) == (kernel not in ("", "6.8.0-51-generic"))
    if outcome.error is not None:
        assert "6.8.0-45-generic" in text.say("en", Phrase(key=outcome.error, params=outcome.params))


def test_new_groups_of_the_person_are_seen_and_only_those() -> None:
    began = Entry(seq=1, at=0.0, kind="run-started", data={"groups": "ana,sudo"})
    later = Entry(seq=9, at=9.0, kind="run-started", data={"groups": "ana,sudo,video"})
    assert gained((began, later), ("ana", "render", "sudo", "video")) == ("render", "video")
    assert gained((began,), ("ana", "sudo")) == ()
    assert gained((Entry(seq=1, at=0.0, kind="run-started"),), ("ana",)) == ()
    assert groups_of(Owner(uid=0, gid=0, name="root", home="/root")) == ()
    assert "nogroup" in groups_of(Owner(uid=65534, gid=65534, name="nobody", home="/"))


def test_a_mounted_system_waits_for_no_reboot(context: Context) -> None:
    context.host = elsewhere(context.host)
    assert reboot.perform_reboot(REBOOT, context).status == "skipped"


def elsewhere(host: object) -> Machine:
    assert isinstance(host, Machine)
    host.root = "/mnt"
    return host


def test_the_entry_survives_as_it_was_written(context: Context) -> None:
    reboot.perform_reboot(REBOOT, context)
    lines = context.folder.journal.read_text().splitlines()
    data: Mapping[str, object] = json.loads(lines[-1])["data"]
    assert (data["unit"], data["kernel"]) == (reboot.unit_name(context.folder), "6.8.0-51-generic")
    assert msgspec.json.decode(lines[-1].encode())["kind"] == "reboot-needed"
    assert RunFolder(Path(context.folder.path)).id == context.folder.id
