from __future__ import annotations

from pathlib import Path

import pytest

from steps.engine.progress import Work, work_of

FETCHING = "dlstatus:1:20.5:Retrieving file 3 of 19\n"
UNPACKING = "pmstatus:dpkg-exec:50.0000:Running dpkg\npmstatus:libnccl2:71.4286:Unpacking libnccl2 (amd64)\n"


@pytest.mark.parametrize(
    ("said", "work"),
    [
        ("", None),
        (FETCHING, Work(phase="download", percent=20.5, what="Retrieving file 3 of 19")),
        (FETCHING + UNPACKING, Work(phase="install", percent=71.4286, what="libnccl2")),
        # The last line is being written.
        (FETCHING + UNPACKING + "pmstatus:libnccl2:9", Work(phase="install", percent=71.4286, what="libnccl2")),
        ("x" * 20_000 + "\n" + FETCHING, Work(phase="download", percent=20.5, what="Retrieving file 3 of 19")),
        ("pmstatus:a:7.0:\xff\n", Work(phase="install", percent=7.0, what="a")),
    ],
)
def test_the_last_whole_line_says_how_far_the_manager_is(said: str, work: Work | None, tmp_path: Path) -> None:
    status = tmp_path / "status"
    status.write_bytes(said.encode("latin-1"))
    assert work_of(status, str(tmp_path), None) == work


def test_nothing_is_known_before_the_manager_has_begun(tmp_path: Path) -> None:
    assert work_of(tmp_path / "none", str(tmp_path), None) is None


def test_a_silent_build_is_counted_by_the_objects_in_its_log(tmp_path: Path) -> None:
    status, log = tmp_path / "status", tmp_path / "var/lib/dkms/nvidia/580.82/build/make.log"
    status.write_text(UNPACKING)
    log.parent.mkdir(parents=True)
    log.write_text("# command: make\n  CC [M]  /x/nv.o\ncc -Wall -c -o /x/nv-a.o nv-a.c\n  LD [M] /x/nvidia.o\n")
    found = work_of(status, str(tmp_path), log.stat().st_mtime - 1)
    assert found is not None
    assert found.objects == 2
    older = work_of(status, str(tmp_path), log.stat().st_mtime + 60)
    assert older is not None
    assert older.objects is None
