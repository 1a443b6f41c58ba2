"""Root looks for programs only where nobody else can put one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from steps.host.trusted_path import home_without_entry, person_home, secure, trusted

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="makes folders of other people")
ANA, USERS, STAFF = 1000, 100, 50


def made(place: Path, *, uid: int = 0, gid: int = 0, mode: int = 0o755) -> str:
    """Return the path of a new folder with this owner and mode."""
    place.mkdir(parents=True)
    os.chown(place, uid, gid)
    place.chmod(mode)
    return str(place)


def test_a_folder_that_a_person_can_write_is_left_out(tmp_path: Path) -> None:
    roots = made(tmp_path / "roots")
    left_out = [
        made(tmp_path / "ana", uid=ANA),
        made(tmp_path / "group", gid=USERS, mode=0o775),
        made(tmp_path / "open", mode=0o777),
        made(tmp_path / "sticky", mode=0o1777),
        str(tmp_path / "missing"),
        "bin",
        "",
    ]
    assert trusted(":".join((*left_out, roots))) == roots


def test_a_folder_counts_by_what_is_above_it_and_by_where_its_links_lead(tmp_path: Path) -> None:
    made(tmp_path / "ana", uid=ANA)
    below = made(tmp_path / "ana" / "bin")
    made(tmp_path / "tmp", mode=0o1777)
    kept = made(tmp_path / "tmp" / "bin")
    link = tmp_path / "link"
    link.symlink_to(below)
    assert trusted(f"{below}:{link}:{kept}") == kept


def test_debians_usr_local_which_its_staff_may_write_stays(tmp_path: Path) -> None:
    local = made(tmp_path / "local", gid=STAFF, mode=0o2775)
    environ = {"PATH": f"{local}:{made(tmp_path / 'ana', uid=ANA)}"}
    secure(environ)
    assert environ["PATH"] == local
    bare: dict[str, str] = {}
    secure(bare)
    assert bare == {}


def test_an_account_without_an_entry_lives_where_its_own_process_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = 54321
    monkeypatch.setenv("HOME", "/scratch/me")
    assert home_without_entry(nobody) == "/"  # what our HOME says is not of that person
    monkeypatch.setattr(os, "geteuid", lambda: nobody)
    assert home_without_entry(nobody) == person_home() == "/scratch/me"
    monkeypatch.setenv("HOME", "scratch")
    assert home_without_entry(nobody) == "/"
