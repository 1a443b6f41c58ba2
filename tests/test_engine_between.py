"""What may happen between two commands on a run: a disk unmounted, a clock set back, another run, a hand in its files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from steps.engine import client
from steps.engine.folder import Refused
from steps.errors import PreflightError
from steps.model.action import Keep, Run, Write
from tests.engine_kit import ended, plan_of, ran, statuses

pytestmark = pytest.mark.usefixtures("state")


# --- the system below a root ------------------------------------------------------------------------

FIRST, OTHER = "0123456789abcdef0123456789abcdef\n", "fedcba9876543210fedcba9876543210\n"


def mounted(root: Path, id: str | None) -> Path:
    """Make a system below `root` and return a setting in it."""
    (root / "etc").mkdir(parents=True)
    (root / "etc/setting").write_text("old")
    if id is not None:
        (root / "etc/machine-id").write_text(id)
    return root / "etc/setting"


def changed_below(root: Path) -> client.RunHandle:
    handle = client.start(plan_of(Write(id="a.one", title="t", path="/etc/setting", text="new"), root=str(root)), sudo=None)
    assert statuses(ended(handle)) == {"a.one": "done"}
    return handle


@pytest.mark.parametrize(("id", "other", "code"), [(None, None, "root-gone"), (FIRST, None, "root-gone"), (FIRST, OTHER, "root-other")])
def test_a_run_is_not_taken_back_where_its_system_is_not_mounted(tmp_path: Path, id: str | None, other: str | None, code: str) -> None:
    root = tmp_path / "root"
    mounted(root, id)
    handle = changed_below(root)
    root.rename(tmp_path / "elsewhere")
    root.mkdir()
    setting = mounted(root, other) if other else root / "etc/setting"
    before = setting.read_text() if other else None
    for act in (handle.undo, handle.resume):
        with pytest.raises(Refused) as caught:
            act()
        assert (caught.value.code, caught.value.exit_code) == (code, 3)
    assert (setting.read_text() if setting.exists() else None) == before
    if other is None:
        root.rmdir()
    else:
        root.rename(tmp_path / "other")
    (tmp_path / "elsewhere").rename(root)
    handle.undo()
    assert (ended(handle).status, (root / "etc/setting").read_text()) == ("undone", "old")


def test_a_system_that_was_given_its_id_since_is_the_same(tmp_path: Path) -> None:
    root = tmp_path / "root"
    setting = mounted(root, None)
    handle = changed_below(root)
    (root / "etc/machine-id").write_text(FIRST)
    handle.resume()
    assert ended(handle).status == "done"
    handle.undo()
    assert (ended(handle).status, setting.read_text()) == ("undone", "old")


# --- the clock --------------------------------------------------------------------------------------

YEARS = 4 * 365 * 86400


def of_a_wrong_clock(handle: client.RunHandle) -> client.RunHandle:
    """Return the run as a clock had dated it that was years ahead and was set right after it."""
    journal, plan = Path(handle.folder, "journal.jsonl"), Path(handle.folder, "plan.json")
    entries = [json.loads(line) for line in journal.read_text().splitlines()]
    journal.write_text("".join(f"{json.dumps({**entry, 'at': entry['at'] + YEARS})}\n" for entry in entries))
    os.utime(plan, ns=(plan.stat().st_atime_ns, plan.stat().st_mtime_ns + YEARS * 10**9))
    return client.find(handle.id)


def keeping(env: Path, version: str) -> tuple[Keep, Run]:
    write = Run(id="a.write", title="t", argv=("sh", "-c", 'echo "$1" >"$2"/version', "sh", version, str(env)))
    return Keep(id="a.keep", title="t", path=str(env)), write


def test_a_later_run_is_known_as_the_later_one_though_the_clock_was_set_back_between(tmp_path: Path) -> None:
    env = tmp_path / "env"
    env.mkdir()
    (env / "version").write_text("first\n")
    older = of_a_wrong_clock(ran(*keeping(env, "second")))
    newer = ran(*keeping(env, "third"))
    with pytest.raises(PreflightError) as caught:
        older.undo()
    assert (caught.value.code, caught.value.params["later"]) == ("undo-later-first", newer.id)
    newer.undo()
    assert (ended(newer).status, (env / "version").read_text()) == ("undone", "second\n")
    older.undo()
    assert (ended(older).status, (env / "version").read_text()) == ("undone", "first\n")
