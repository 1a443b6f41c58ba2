"""The hosts: this machine, a mounted system, and what changing files may do."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from steps.errors import InputError
from steps.host.captured import Capture, CapturedHost
from steps.host.local import NO_ANSWER, LocalHost
from steps.host.opening import open_host
from steps.host.rooted import RootedHost


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A made-up system with links of both kinds, two kernels, and a way out that must lead nowhere."""
    made = tmp_path / "root"
    for folder in ("etc", "usr/lib", "lib/modules/5.15.0-9-generic", "lib/modules/5.15.0-113-generic", "var/lib/dpkg"):
        (made / folder).mkdir(parents=True)
    (made / "usr/lib/os-release").write_text('ID=ubuntu\nVERSION_ID="22.04"\nPRETTY_NAME="Ubuntu 22.04.4 LTS"\n')
    (made / "etc/os-release").symlink_to("../usr/lib/os-release")
    (made / "etc/absolute").symlink_to("/usr/lib/os-release")
    (made / "etc/out").symlink_to("../../../../../../../../../../etc/passwd")
    (made / "etc/circle").symlink_to("circle")
    (tmp_path / "secret").write_text("outside")
    (made / "etc/aside").symlink_to("../../secret")
    return made


@pytest.fixture
def rooted(root: Path) -> RootedHost:
    return RootedHost(str(root), CapturedHost(Capture(schema="bringup/capture", version=1, files={"/sys/x": "hardware\n"}, dirs=())))


# -- probes -----------------------------------------------------------------------------------------------------------


def test_a_probe_answers_in_english_with_no_input() -> None:
    host = LocalHost()
    assert host.run(("sh", "-c", "echo $LC_ALL; cat")).stdout == "C\n"


def test_a_program_that_is_not_there_is_status_127() -> None:
    assert LocalHost().run(("no-such-program-here",)).status == 127


def test_a_probe_that_hangs_is_stopped_with_its_children() -> None:
    began = time.monotonic()
    found = LocalHost().run(("sh", "-c", "echo begun; sleep 60 & sleep 60"), timeout=0.3)
    assert time.monotonic() - began < 5
    assert (found.stdout, found.status) == ("begun\n", None)
    assert NO_ANSWER in found.stderr


def test_a_flood_is_cut_off() -> None:
    found = LocalHost().run(("yes",), timeout=20)
    assert found.status is None
    assert 1 << 20 < len(found.stdout) < 64 << 20


def test_a_pipe_in_the_way_does_not_hang_a_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert LocalHost().read(str(tmp_path / "pipe")) is None


def test_what_is_not_there_is_told_from_what_may_not_be_seen(tmp_path: Path) -> None:
    host = LocalHost()
    assert host.exists(str(tmp_path / "none")) is False
    assert host.exists(str(tmp_path)) is True
    assert host.read(str(tmp_path / "none")) is None
    assert host.listdir(str(tmp_path / "none")) is None


# -- a mounted system -------------------------------------------------------------------------------------------------


def test_links_are_followed_inside_the_root(rooted: RootedHost) -> None:
    assert (rooted.read("/etc/os-release") or "").startswith("ID=ubuntu")
    assert (rooted.read("/etc/absolute") or "").startswith("ID=ubuntu")


def test_no_link_leads_out_of_the_root(rooted: RootedHost) -> None:
    assert rooted.read("/etc/out") is None
    assert rooted.read("/etc/aside") is None
    assert rooted.read("/../secret") is None
    assert rooted.exists("/etc/circle") is None
    assert rooted.read("/etc/circle") is None


def test_hardware_is_the_machine_s_and_the_kernel_is_the_root_s_newest(rooted: RootedHost) -> None:
    assert rooted.read("/sys/x") == "hardware\n"
    assert rooted.kernel() == "5.15.0-113-generic"
    assert rooted.read("/proc/sys/kernel/osrelease") == "5.15.0-113-generic\n"
    assert rooted.exists("/sys/module/nvidia") is False


def test_commands_start_behind_chroot(rooted: RootedHost, root: Path) -> None:
    assert rooted.command(("apt-get", "update")) == ("chroot", str(root), "apt-get", "update")


def test_globs_are_spelled_as_inside_the_root(rooted: RootedHost) -> None:
    assert rooted.glob("/lib/modules/5.15*") == ("/lib/modules/5.15.0-113-generic", "/lib/modules/5.15.0-9-generic")
    assert rooted.glob("/etc/os-*") == ("/etc/os-release",)


def test_a_root_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        open_host(None, str(tmp_path / "none"))
    assert caught.value.code == "root-missing"


# -- changing ---------------------------------------------------------------------------------------------------------


def test_a_written_file_is_whole_and_has_its_mode(rooted: RootedHost, root: Path) -> None:
    rooted.write_bytes("/etc/new.conf", b"a = 1\n", 0o640)
    assert (root / "etc/new.conf").read_bytes() == b"a = 1\n"
    assert stat.S_IMODE((root / "etc/new.conf").stat().st_mode) == 0o640
    assert [path.name for path in (root / "etc").iterdir() if "bringup" in path.name] == []


def test_an_existing_file_keeps_its_mode_and_a_link_its_target(rooted: RootedHost, root: Path) -> None:
    (root / "usr/lib/os-release").chmod(0o600)
    rooted.write_bytes("/etc/absolute", b"ID=debian\n", 0o644)
    assert (root / "etc/absolute").is_symlink()
    assert (root / "usr/lib/os-release").read_bytes() == b"ID=debian\n"
    assert stat.S_IMODE((root / "usr/lib/os-release").stat().st_mode) == 0o600


def test_nothing_is_written_outside_the_root(rooted: RootedHost, root: Path) -> None:
    rooted.mkdir("/secret")
    with pytest.raises(InputError) as caught:
        rooted.write_bytes("/etc/aside", b"x", 0o644)
    assert caught.value.code == "file-not-plain"
    assert (root.parent / "secret").read_text() == "outside"


def test_folders_are_made_and_trees_removed_inside_the_root(rooted: RootedHost, root: Path) -> None:
    rooted.mkdir("/var/lib/bringup/runs", 0o750)
    assert stat.S_IMODE((root / "var/lib/bringup/runs").stat().st_mode) == 0o750
    rooted.write_bytes("/var/lib/bringup/runs/a", b"")
    rooted.remove("/var/lib/bringup")
    rooted.remove("/var/lib/bringup")
    assert not (root / "var/lib/bringup").exists()
    rooted.remove("/etc/out")
    assert not (root / "etc/out").is_symlink()


@pytest.mark.parametrize("path", ["/", "/etc", "/usr/..", "//", "/etc/../usr"])
def test_top_folders_are_never_removed(rooted: RootedHost, path: str) -> None:
    with pytest.raises(InputError) as caught:
        rooted.remove(path)
    assert caught.value.code == "remove-refused"


def test_free_space_is_asked_of_what_will_hold_a_path(rooted: RootedHost, root: Path) -> None:
    free = rooted.free_bytes("/var/lib/not/yet/there")
    found = os.statvfs(root)
    assert free is not None
    assert abs(free - found.f_bavail * found.f_frsize) < 1 << 30
