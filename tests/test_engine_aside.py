"""What a run keeps as a whole: there whole or not at all, brought back only where it is there, and never over somebody else's."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from steps.engine import aside, client
from steps.engine.context import Context
from steps.engine.folder import Origin, create, invoking_owner
from steps.engine.journal import Journal
from steps.errors import PreflightError
from steps.host.local import LocalHost
from steps.model.action import AnyAction, Keep, RemovePath, Run
from steps.model.plan import digest
from steps.model.run import RunState
from tests.engine_kit import ended, plan_of, ran, statuses

pytestmark = pytest.mark.usefixtures("state")


@pytest.fixture
def env(tmp_path: Path) -> Path:
    """Return a small environment with links and a folder in it, in a folder of its own."""
    at = tmp_path / "x" / "env"
    (at / "bin").mkdir(parents=True)
    (at / "bin" / "python").symlink_to("/usr/bin/python3")
    (at / "lib64").symlink_to("bin")
    (at / "version").write_text("1.0")
    (at / "large").write_bytes(b"x" * (3 << 20))
    return at


def held(path: Path) -> dict[str, str]:
    """Return what lies below a folder: where links point, and how large files are."""
    return {
        str(one.relative_to(path)): str(one.readlink()) if one.is_symlink() else "" if one.is_dir() else str(one.stat().st_size)
        for one in path.rglob("*")
    }


def beside(path: Path) -> list[str]:
    return sorted(one.name for one in path.parent.iterdir())


def changing(path: Path, to: str) -> tuple[AnyAction, ...]:
    """Return the copy of an environment, and a change of it."""
    script = 'printf "$2" > "$1/version"; : > "$1/of-$2"'
    keep = Keep(id="a.keep", title="t", path=str(path))
    return keep, Run(id="a.change", title="t", needs=("a.keep",), argv=("sh", "-c", script, "sh", str(path), to))


def undone(handle: client.RunHandle) -> RunState:
    handle.undo()
    return ended(handle)


@contextlib.contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Let nothing that is started here write a larger file, as on a disk that runs full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_an_environment_comes_back_as_it_was_and_no_copy_stays(env: Path) -> None:
    before = held(env)
    handle = ran(*changing(env, "2.0"))
    assert (statuses(handle.state()), (env / "version").read_text()) == ({"a.keep": "done", "a.change": "done"}, "2.0")
    assert beside(env) == [f".env.before-{handle.id}", "env"]
    assert statuses(undone(handle))["a.keep"] == "undone"
    assert ((env / "version").read_text(), held(env), beside(env)) == ("1.0", before, ["env"])


def test_a_copy_that_broke_off_leaves_the_environment_alone_when_it_is_taken_back(env: Path) -> None:
    before = held(env)
    with files_of_at_most(1 << 20):
        handle = ran(*changing(env, "2.0"))
    assert statuses(handle.state())["a.keep"] == "failed"
    assert undone(handle).status == "undone"
    assert (held(env), (env / "version").read_text(), beside(env)) == (before, "1.0", ["env"])


def test_a_run_tried_again_after_a_broken_copy_begins_it_anew(env: Path) -> None:
    before = held(env)
    with files_of_at_most(1 << 20):
        handle = ran(*changing(env, "2.0"))
    # A runner that was killed leaves what it had copied.
    partial = env.with_name(f".env.before-{handle.id}.partial")
    partial.mkdir()
    (partial / "strange").write_text("x")
    handle.resume()
    assert statuses(ended(handle)) == {"a.keep": "done", "a.change": "done"}
    assert statuses(undone(handle))["a.keep"] == "undone"
    assert (held(env), beside(env)) == (before, ["env"])


def test_two_repairs_of_one_environment_go_back_one_after_the_other(env: Path) -> None:
    first, second = ran(*changing(env, "2.0")), ran(*changing(env, "3.0"))
    with pytest.raises(PreflightError) as caught:
        first.undo()
    assert (caught.value.code, caught.value.params["later"]) == ("undo-later-first", second.id)
    undone(second)
    assert ((env / "version").read_text(), (env / "of-3.0").exists(), (env / "of-2.0").exists()) == ("2.0", False, True)
    undone(first)
    assert ((env / "version").read_text(), (env / "of-2.0").exists(), beside(env)) == ("1.0", False, ["env"])


def test_an_older_run_that_wrote_into_an_environment_waits_for_the_one_that_keeps_all_of_it(env: Path) -> None:
    older = ran(Keep(id="a.keep", title="t", path=str(env / "version"), moves=True))
    later = ran(*changing(env, "2.0"))
    with pytest.raises(PreflightError) as caught:
        older.undo()
    assert caught.value.params["later"] == later.id


def test_a_run_that_went_on_in_what_its_repair_keeps_goes_back_before_it_and_does_not_come_back_with_it(tmp_path: Path) -> None:
    env = tmp_path / "made"
    make = Run(id="a.make", title="t", lane="python", argv=("mkdir", str(env)), undo=(RemovePath(path=str(env)),))
    check = Run(id="a.check", title="t", lane="python", argv=("test", "-e", str(env / "of-2.0")))
    first = ran(make, check, Run(id="a.more", title="t", lane="python", argv=("touch", str(env / "more"))))
    repair = client.start(msgspec.structs.replace(plan_of(*changing(env, "2.0")), repairs=first.id), sudo=None)
    assert (ended(first).status, ended(repair).status) == ("failed", "done")
    first.retry("a.check")
    assert ended(first).status == "done"
    with pytest.raises(PreflightError) as caught:
        repair.undo()
    assert (caught.value.code, caught.value.params["later"]) == ("undo-later-first", first.id)
    assert (env / "more").exists()
    undone(first)
    assert not env.exists()
    undone(repair)
    assert beside(env) == []


def test_a_repair_goes_back_before_the_run_that_stopped_until_that_goes_on(tmp_path: Path) -> None:
    env = tmp_path / "made"
    make = Run(id="a.make", title="t", lane="python", argv=("mkdir", str(env)), undo=(RemovePath(path=str(env)),))
    first = ran(make, Run(id="a.check", title="t", lane="python", argv=("test", "-e", str(env / "of-2.0"))))
    repair = client.start(msgspec.structs.replace(plan_of(*changing(env, "2.0")), repairs=first.id), sudo=None)
    ended(repair)
    with pytest.raises(PreflightError) as caught:
        first.undo()
    assert caught.value.params["later"] == repair.id
    undone(repair)
    assert (held(env), beside(env)) == ({}, ["made"])
    undone(first)
    assert beside(env) == []


def test_a_name_that_is_taken_is_refused_and_stays(env: Path) -> None:
    first = ran(*changing(env, "2.0"))
    undone(first)
    names = [env.with_name(f".env.before-{first.id[:-1]}{letter}") for letter in "abcd"]
    for name in names:
        name.mkdir()
    handle = ran(*changing(env, "3.0"))
    state = handle.state()
    assert (statuses(state)["a.keep"], state.exit) == ("failed", 3)
    undone(handle)
    assert ((env / "version").read_text(), all(name.is_dir() for name in names)) == ("1.0", True)


def test_a_copy_that_somebody_took_away_is_missed_and_the_environment_stays(env: Path) -> None:
    handle = ran(*changing(env, "2.0"))
    env.with_name(f".env.before-{handle.id}").rename(env.with_name("elsewhere"))
    state = undone(handle)
    assert (state.status, (env / "version").read_text()) == ("undo-failed", "2.0")


def test_what_a_link_names_is_copied_and_the_link_stays(env: Path, tmp_path: Path) -> None:
    link = tmp_path / "current"
    link.symlink_to(env)
    handle = ran(*changing(link, "2.0"))
    assert ((env / "version").read_text(), beside(env)) == ("2.0", [f".env.before-{handle.id}", "env"])
    undone(handle)
    assert (link.is_symlink(), (env / "version").read_text()) == (True, "1.0")


# --- moved away -------------------------------------------------------------------------------------


def moved(path: Path) -> Keep:
    return Keep(id="a.away", title="t", path=str(path), moves=True)


def test_a_file_moved_away_comes_back_and_what_took_its_place_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "x" / "nvidia.ko"
    file.parent.mkdir()
    file.write_text("first")
    handle = ran(moved(file))
    assert beside(file) == [f".nvidia.ko.{handle.id}.disabled"]
    file.write_text("second")
    undone(handle)
    assert file.read_text() == "first"
    assert (file.parent / f".nvidia.ko.{handle.id}.undone.disabled").read_text() == "second"


def test_a_file_that_was_never_moved_stays_when_the_run_is_taken_back(tmp_path: Path) -> None:
    file = tmp_path / "x" / "a.list"
    file.parent.mkdir()
    (file.parent / "a.list.disabled").write_text("earlier")
    handle = ran(moved(file))
    assert statuses(handle.state()) == {"a.away": "failed"}
    file.write_text("live")
    undone(handle)
    assert (file.read_text(), (file.parent / "a.list.disabled").read_text()) == ("live", "earlier")


# --- room, and a runner that was killed -------------------------------------------------------------


class Full(LocalHost):
    """A machine with a disk that has hardly any room left."""

    def free_bytes(self, path: str) -> int | None:
        return 1 << 20


@pytest.fixture
def context(env: Path) -> Iterator[Context]:
    """Return what an action is run with on a full disk."""
    plan, owner = plan_of(Keep(id="a.keep", title="t", path=str(env))), invoking_owner()
    folder = create(plan, Origin(digest=digest(plan), owner=owner))
    journal = Journal(folder.journal, owner.gid)
    yield Context(folder, plan=plan, origin=folder.read_origin(), host=Full(), outside=Full(), journal=journal)
    journal.close()


def test_a_disk_without_room_is_seen_before_anything_is_copied(env: Path, context: Context) -> None:
    (action,) = context.plan.actions
    assert isinstance(action, Keep)
    with pytest.raises(PreflightError) as caught:
        aside.keep(action, context)
    assert (caught.value.code, beside(env)) == ("keep-no-room", ["env"])


@pytest.mark.parametrize("at", ["moved aside", "moved in", "cleared"])
def test_a_way_back_that_was_cut_off_is_gone_to_its_end(env: Path, context: Context, at: str) -> None:
    (action,) = context.plan.actions
    assert isinstance(action, Keep)
    context.host = LocalHost()
    assert aside.keep(action, context).status == "done"
    context.journal.append("action-finished", action.id, "done")
    (env / "version").write_text("2.0")
    kept = Path(action.kept(context.folder.id))
    replaced = kept.with_name(f"{kept.name}.undone")
    (context.folder.kept(action.id) / "begun").touch()
    env.rename(replaced)
    if at != "moved aside":
        kept.rename(env)
    if at == "cleared":
        (replaced / "version").unlink()
    assert aside.bring_back(action, context).status == "undone"
    assert ((env / "version").read_text(), beside(env)) == ("1.0", ["env"])
