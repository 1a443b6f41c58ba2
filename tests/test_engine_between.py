"""What may happen between two commands on a run: a disk unmounted, a clock set back, another run, a hand in its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from steps.engine import client
from steps.engine.folder import Refused
from steps.model.action import Write
from tests.engine_kit import ended, plan_of, statuses

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
