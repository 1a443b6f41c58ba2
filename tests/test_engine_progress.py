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


KBUILD = """NVIDIA_UVM_SOURCES ?=
NVIDIA_UVM_SOURCES_CXX ?=
NVIDIA_UVM_SOURCES += nvidia-uvm/uvm.c
NVIDIA_UVM_SOURCES += nvidia-uvm/uvm_tools.c
NVIDIA_UVM_OBJECTS = $(patsubst %.c,%.o,$(NVIDIA_UVM_SOURCES))
"""
DKMS = """PACKAGE_NAME="nvidia-current"
BUILT_MODULE_NAME[0]="nvidia"
DEST_MODULE_NAME[0]="$PACKAGE_NAME"
BUILT_MODULE_NAME[1]="nvidia-uvm"
"""


@pytest.mark.parametrize(("kbuild", "dkms", "of"), [(KBUILD, DKMS, 6), ("obj-m += other.o\n", DKMS, None), (KBUILD, None, None)])
def test_a_build_says_how_many_objects_it_makes(kbuild: str, dkms: str | None, of: int | None, tmp_path: Path) -> None:
    status, build = tmp_path / "status", tmp_path / "var/lib/dkms/nvidia-current/535.309.01/build"
    status.write_text(UNPACKING)
    (build / "nvidia-uvm").mkdir(parents=True)
    (build / "make.log").write_text(" CONFTEST: linux/clk.h\n")
    (build / "Kbuild").write_text("NVIDIA_SOURCES += nvidia/nv.c\n" if kbuild is KBUILD else "")
    (build / "nvidia-uvm/nvidia-uvm-sources.Kbuild").write_text(kbuild)
    # From 550 on one of the modules lists its sources so.
    (build / "nvidia-uvm/nvidia-drm-sources.mk").write_text("NVIDIA_DRM_SOURCES = nvidia-drm/nvidia-drm.c\n" if kbuild is KBUILD else "")
    # What the build's own tests make: it may be gone, or no folder, at any time.
    (build / ".tmp_1").symlink_to("/nowhere")
    (build / "conftest.mk").symlink_to("/nowhere")
    if dkms is not None:
        (build / "dkms.conf").write_text(dkms)
    found = work_of(status, str(tmp_path), None)
    assert found is not None
    assert (found.objects, found.of, found.stirred) == (0, of, (build / "make.log").stat().st_mtime)
