"""Package managers without any: what their output means, and which commands follow from two snapshots."""

from __future__ import annotations

import base64
from pathlib import Path

import msgspec
import pytest

from steps import text
from steps.errors import PreflightError
from steps.host.base import Result
from steps.host.files import FileTree
from steps.host.local import LocalHost
from steps.host.rooted import RootedHost
from steps.managers import apt_messages, apt_repository, apt_state, base, dnf, preflight
from steps.managers.base import Change, Holder, Installed, Kept, Simulation, Snapshot
from steps.managers.shown import shown
from steps.model.action import FileIs, ManagerName, PackagesAre, Write, installing
from steps.model.base import Phrase

APT = base.manager("apt")


class Answers(FileTree):
    """A machine whose commands answer as told, and which has this much space."""

    name = "answers"
    rehearsal = False

    def __init__(self, answers: dict[str, Result] | None = None, *, free: int | None = 10**12) -> None:
        super().__init__("/nonexistent")
        self.answers = answers or {}
        self.free = free

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0) -> Result:
        return self.answers.get(argv[0], Result(status=127))

    def recorded(self) -> tuple[tuple[str, ...], ...]:
        return ()

    def command(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        return argv

    def free_bytes(self, path: str) -> int | None:
        return self.free


def snapshot(**packages: Installed) -> Snapshot:
    return Snapshot(manager="apt", packages={name.replace("_", "-"): package for name, package in packages.items()})


def every(*snapshots: Snapshot) -> frozenset[str]:
    return frozenset(name for one in snapshots for name in one.packages)


# --- apt: what it says ----------------------------------------------------------------------------


def test_a_simulation_is_read_line_by_line() -> None:
    output = (
        "Remv nvidia-kernel-dkms [570.1-1]\n"
        "Inst nvidia-driver [570.1-1] (580.2-1 NVIDIA CUDA:developer.download.nvidia.com [amd64]) []\n"
        "Inst libc6:i386 (2.36-9 Debian:12/stable [i386])\n"
        "Conf nvidia-driver (580.2-1 NVIDIA CUDA:developer.download.nvidia.com [amd64])\n"
    )
    assert apt_state.parse_changes(output) == (
        Change(name="nvidia-kernel-dkms", before="570.1-1"),
        Change(name="nvidia-driver", before="570.1-1", after="580.2-1"),
        Change(name="libc6:i386", after="2.36-9"),
    )


@pytest.mark.parametrize(
    ("sentence", "growth"),
    [
        ("After this operation, 821 MB of additional disk space will be used.", 821_000_000),
        ("After this operation, 1,234 kB disk space will be freed.", -1_234_000),
        ("After this operation, 9.3 GB of additional disk space will be used.", 9_300_000_000),
        ("After this operation, 0 B of additional disk space will be used.", 0),
        ("", None),
    ],
)
def test_the_announced_growth_is_read_in_bytes(sentence: str, growth: int | None) -> None:
    assert apt_state.parse_sizes(f"{sentence}\n'https://a/b.deb' b.deb 20672 SHA256:aa\n'https://a/c.deb' c.deb 8 SHA256:bb\n") == (
        20680,
        growth,
    )


LOCKED = (
    "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 78 (apt-get)\nE: Unable to acquire the dpkg frontend lock"
)


@pytest.mark.parametrize(
    ("output", "holder"),
    [
        (LOCKED, Holder(lock="/var/lib/dpkg/lock-frontend", pid=78, name="apt-get")),
        ("E: Could not get lock /var/lib/apt/lists/lock. It is held by process 0\n", Holder(lock="/var/lib/apt/lists/lock")),
        ("dpkg: error: dpkg frontend lock was locked by another process with pid 78\n", Holder(lock="dpkg frontend lock", pid=78)),
        ("Waiting for cache lock: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (apt)... 3s\nDone.\n", None),
        ("E: Unable to locate package x\n", None),
    ],
)
def test_the_holder_of_a_lock_is_read_from_the_refusal(output: str, holder: Holder | None) -> None:
    assert apt_messages.busy(output) == holder


@pytest.mark.parametrize(
    ("output", "code", "said"),
    [
        ("E: Release file for http://a/InRelease is expired (invalid since 9d).", "release-expired", "http://a/InRelease"),
        ("E: The repository 'https://a/b  InRelease' is not signed.", "not-signed", "https://a/b"),
        ("Err: NO_PUBKEY F06E25DD8B62B706\nE: The repository 'https://a InRelease' is not signed.", "key-missing", "F06E25DD8B62B706"),
        ("E: Failed to fetch https://a/x.deb  Hash Sum mismatch", "hash", "https://a/x.deb"),
        ("E: Version '9' for 'libnccl2' was not found", "no-such-version", "libnccl2"),
        (
            "dpkg: dependency problems\nE: dpkg was interrupted, you must manually run 'dpkg --configure -a'",
            "interrupted",
            "dpkg was interrupted",
        ),
        ("cannot copy extracted data for './x': failed to write (No space left on device)", "no-space", "No space left on device"),
    ],
)
def test_the_cause_of_a_failure_is_one_sentence(output: str, code: str, said: str) -> None:
    found = apt_messages.cause(output)
    assert isinstance(found, Phrase)
    assert found.key == f"manager.apt.{code}"
    assert said in str(found.params["text"])


def test_output_that_is_not_recognised_has_no_cause() -> None:
    assert apt_messages.cause("Setting up lab-ok (1.0) ...\n") is None


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_every_cause_has_its_words(language: text.Language) -> None:
    keys = [f"manager.apt.{code}" for code in ("locked", *(code for code, _ in apt_messages.CAUSES))]
    assert [key for key in keys if text.lookup(language, key) is None] == []


# --- apt: what is run -----------------------------------------------------------------------------


def test_removals_are_switched_off_unless_the_plan_names_them() -> None:
    assert "--no-remove" in APT.argv(installing("apt", "t", "t", ("nvidia-open",)))
    assert "--no-remove" not in APT.argv(installing("apt", "t", "t", ("nvidia-open",), may_remove=("cuda-drivers",)))


def test_the_lists_are_fetched_so_that_a_failure_is_one() -> None:
    assert "APT::Update::Error-Mode=any" in APT.refresh_argv()
    assert APT.environment()["DEBIAN_FRONTEND"] == "noninteractive"


def test_installing_is_done_when_the_versions_match_their_patterns() -> None:
    action = installing("apt", "t", "t", ("nvidia-open=580.*", "libnccl2"))
    assert action.done_when == (PackagesAre(manager="apt", packages={"nvidia-open": "580.*", "libnccl2": None}),)


@pytest.mark.parametrize(
    ("status", "version", "there"),
    [
        ("ii ", "580.82-1", True),
        ("ii ", "570.1-1", False),
        ("ii ", "3:580.82-1", True),
        ("ii ", "580:570.1-1", False),
        ("iF ", "580.82-1", False),
        ("rc ", "580.82-1", False),
        ("hi ", "580.82-1", True),
    ],
)
def test_only_a_configured_package_counts_as_installed(status: str, version: str, there: bool) -> None:
    host = Answers({"dpkg-query": Result(stdout=f"nvidia-open\tamd64\t{version}\t{status}\n", status=0)})
    probe = PackagesAre(manager="apt", packages={"nvidia-open": "580.*"})
    assert base.packages_are(probe, host) is there


def test_without_an_answer_of_dpkg_nothing_is_claimed() -> None:
    assert base.packages_are(PackagesAre(manager="apt", packages={"x": None}), Answers()) is None


# --- apt: the way back ----------------------------------------------------------------------------


def test_equal_snapshots_need_nothing() -> None:
    state = snapshot(a=Installed(version="1", automatic=True, held=True, status="hi"))
    assert APT.restore(state, state, Kept(), every(state, state)) == ()


@pytest.mark.parametrize(
    ("was", "now", "marks"),
    [
        ("ii", "ri", [("apt-mark", "install", "rival")]),
        ("ii", "pi", [("apt-mark", "install", "rival")]),
        ("ri", "ii", [("apt-mark", "deinstall", "rival")]),
        ("ii", "hi", [("apt-mark", "unhold", "rival")]),
        ("ri", "hi", [("apt-mark", "unhold", "rival"), ("apt-mark", "deinstall", "rival")]),
        ("hi", "ri", [("apt-mark", "hold", "rival")]),
    ],
)
def test_what_apt_had_told_dpkg_to_do_when_it_was_killed_is_untold(was: str, now: str, marks: list[tuple[str, ...]]) -> None:
    before, after = (snapshot(rival=Installed(version="1", status=word, held=word[0] == "h")) for word in (was, now))
    assert list(APT.restore(before, after, Kept(), every(before, after))) == marks


def test_one_transaction_names_every_package_and_then_the_marks_come_back() -> None:
    before = snapshot(
        driver=Installed(version="1"),
        libs=Installed(version="1", automatic=True),
        stays=Installed(version="5"),
        ghost=Installed(version="1", status="rc"),
    )
    after = snapshot(
        driver=Installed(version="2"),
        new=Installed(version="3"),
        stays=Installed(version="5"),
        ghost=Installed(version="2"),
        rest=Installed(version="1", status="rc"),
    )
    transaction, purge, *marks = APT.restore(before, after, Kept(files={"driver=1": "/kept/driver_1_all.deb"}), every(before, after))
    assert transaction[transaction.index("install") + 1 :] == ("/kept/driver_1_all.deb", "libs=1", "ghost-", "new-")
    assert "--allow-downgrades" in transaction
    assert purge == ("dpkg", "--purge", "new", "rest")
    assert marks == [("apt-mark", "auto", "libs"), ("apt-mark", "manual", "driver")]


def test_a_healthy_dpkg_needs_no_repair_and_a_silent_one_gets_it() -> None:
    assert APT.repair(Answers({"dpkg": Result(status=0)})) == ()
    assert [argv[:1] for argv in APT.repair(Answers())] == [("dpkg",), ("apt-get",)]


def test_what_dpkg_had_not_taken_into_its_list_is_repaired_though_its_audit_is_silent(tmp_path: Path) -> None:
    host = Answers({"dpkg": Result(status=0)})
    host.root = str(tmp_path)
    (tmp_path / "var/lib/dpkg/updates").mkdir(parents=True)
    assert APT.repair(host) == ()
    (tmp_path / "var/lib/dpkg/updates/0000").write_text("Package: a\n")
    assert [argv[-2:] for argv in APT.repair(host)] == [("--configure", "-a"), ("-f", "install")]


HALF = Installed(version="2", status="iHR")


def test_half_unpacked_packages_are_ended_before_apt_is_asked_for_anything() -> None:
    before = snapshot(driver=Installed(version="1"))
    after = snapshot(driver=HALF, libs=HALF)
    remove, unpack, transaction, *_ = APT.restore(before, after, Kept(files={"driver=1": "/kept/driver_1_all.deb"}), every(before, after))
    assert remove == ("dpkg", "--force-remove-reinstreq", "--force-depends", "--remove", "libs")
    assert (unpack[-2:], transaction[-2:]) == (("--unpack", "/kept/driver_1_all.deb"), ("/kept/driver_1_all.deb", "libs-"))
    # Cut off in its removal, it has its version still.
    after = snapshot(driver=Installed(version="1", status="rH"))
    unpack, *_ = APT.restore(before, after, Kept(files={"driver=1": "/kept/driver_1_all.deb"}), every(before, after))
    assert unpack[-2:] == ("--unpack", "/kept/driver_1_all.deb")


@pytest.mark.parametrize(
    ("status", "version"),
    [("", "580.105.08-1ubuntu1"), ("580.95.05-1ubuntu1", "580.95.05-1ubuntu1"), ("570.1-1", "580.105.08-1ubuntu1")],
)
def test_a_half_unpacked_package_is_ended_from_the_version_that_dpkg_names_else_the_newest(status: str, version: str) -> None:
    versions = ("580.105.08-1ubuntu1", "580.95.05-1ubuntu1", "580.95.05-1ubuntu10")
    names = [f"/var/cache/apt/archives/driver_{one}_amd64.deb" for one in versions]

    class Half(Answers):
        def glob(self, pattern: str) -> tuple[str, ...]:
            return tuple(names) if "/driver_*" in pattern else ()

    host = Half({"dpkg-query": Result(stdout=f"driver\tamd64\t{status}\tiHR\n", status=0), "dpkg": Result(stdout="driver", status=0)})
    unpack, *_ = APT.repair(host)
    assert unpack[-2:] == ("--unpack", f"/var/cache/apt/archives/driver_{version}_amd64.deb")


def test_what_is_replaced_is_fetched_or_built_again() -> None:
    simulation = Simulation(changes=(Change(name="a", before="1:2-3", after="2"), Change(name="b", after="1")))
    (keep,) = APT.keeping(simulation, Answers({"dpkg-query": Result(stdout="a\ta\tamd64\n", status=0)}), "/kept")
    assert keep.file == "a_1%3a2-3_amd64.deb"
    assert [(way.fetches, way.steps[0]) for way in keep.ways] == [
        (True, ("env", "--chdir=/kept/partial", "apt-get", "-q", *NO_PATIENCE, "download", "a=1:2-3"))
    ]
    assert APT.kept(simulation, Answers(), "/kept") == Kept(lost=("a=1:2-3",))


NO_PATIENCE = ("-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=20", "-o", "Acquire::https::Timeout=20")

LOCKS_TABLE = """\
1: POSIX  ADVISORY  WRITE 812 fe:01:4242 0 EOF
2: POSIX  ADVISORY  WRITE 78 fe:00:4242 0 EOF
3: FLOCK  ADVISORY  WRITE 99 fe:00:17 0 EOF
"""


class Locked(Answers):
    """A machine with a table of locks, whose processes have names."""

    def read(self, path: str) -> str | None:
        return {"/proc/locks": LOCKS_TABLE, "/proc/78/comm": "apt-get\n", "/proc/812/comm": "postgres\n"}.get(path)


def test_a_lock_is_told_from_one_of_the_same_number_on_another_disk() -> None:
    host = Locked({"stat": Result(stdout=f"4242 {0xFE << 8} /var/lib/dpkg/lock-frontend\n", status=0)})
    assert APT.lock_holder(host) == Holder(lock="/var/lib/dpkg/lock-frontend", pid=78, name="apt-get")
    assert APT.lock_holder(Answers()) is None


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kernel", "reason"),
    [
        ("openssh-server", None, "remote"),
        ("gdm3", None, "desktop"),
        ("libc6:i386", None, "base"),
        ("linux-image-6.1.0-32-amd64", "6.1.0-32-amd64", "kernel"),
        ("linux-image-6.1.0-31-amd64", "6.1.0-32-amd64", None),
        ("nvidia-driver-570", "6.1.0-32-amd64", None),
    ],
)
def test_what_a_machine_lives_on_is_protected(name: str, kernel: str | None, reason: str | None) -> None:
    assert preflight.protected(name, kernel) == reason


def test_what_is_fetched_and_what_is_unpacked_lie_on_one_disk_or_on_two() -> None:
    action, simulation = installing("apt", "t", "t", ("x",)), Simulation(disk_bytes=6 * 10**9, download_bytes=5 * 10**9)
    apart = Answers({"stat": Result(stdout="1 /\n1 /usr\n2 /var/cache\n", status=0)}, free=7 * 10**9)
    preflight.check(action, simulation, apart)
    together = Answers({"stat": Result(stdout="1 /\n1 /usr\n1 /var/cache\n", status=0)}, free=7 * 10**9)
    with pytest.raises(PreflightError) as refusal:
        preflight.check(action, simulation, together)
    assert refusal.value.params == {"path": "/usr", "needed": "11.2 GB", "free": "7.0 GB"}


def test_what_is_put_aside_needs_room_where_it_is_put() -> None:
    action, simulation = installing("apt", "t", "t", ("x",)), Simulation(disk_bytes=10**9, download_bytes=10**9)
    small = Answers({"stat": Result(stdout="1 /\n1 /usr\n1 /var/cache\n2 /var/lib\n", status=0)}, free=3 * 10**9)
    preflight.check(action, simulation, small, aside=2 * 10**9)
    with pytest.raises(PreflightError) as refusal:
        preflight.check(action, simulation, small, aside=3 * 10**9)
    assert refusal.value.params == {"path": "/var/lib", "needed": "3.2 GB", "free": "3.0 GB"}
    together = Answers({"stat": Result(stdout="1 /\n1 /usr\n1 /var/cache\n1 /var/lib\n", status=0)}, free=4 * 10**9)
    with pytest.raises(PreflightError) as refusal:
        preflight.check(action, simulation, together, aside=2 * 10**9)
    assert refusal.value.params["needed"] == "4.2 GB"


def test_the_managers_say_what_their_packages_take() -> None:
    assert APT.installed_bytes(("a", "b"), Answers({"dpkg-query": Result(stdout="100\n\n24\n", status=1)})) == 124 << 10
    assert APT.installed_bytes((), Answers()) == 0
    assert APT.installed_bytes(("a",), Answers()) is None
    told = Result(stdout="5000000000\npackage b is not installed\n", status=1)
    assert base.manager("dnf").installed_bytes(("a", "b"), Answers({"rpm": told})) == 5 * 10**9


def test_what_somebody_has_held_back_is_not_changed() -> None:
    action = installing("apt", "t", "t", ("nvidia-open=580.*",), may_remove=("nvidia-*",))
    changes = (Change(name="nvidia-open", before="570", after="580"), Change(name="nvidia-new", after="580"))
    preflight.check(action, Simulation(changes=changes), Answers(), held=frozenset(("other", "nvidia-new")))
    for held, one in ((("nvidia-open",), changes[0]), (("nvidia-open",), Change(name="nvidia-open", before="570"))):
        with pytest.raises(PreflightError) as refusal:
            preflight.check(action, Simulation(changes=(one,)), Answers(), held=frozenset(held))
        assert (refusal.value.code, refusal.value.params) == ("packages-held", {"packages": "nvidia-open"})


@pytest.mark.parametrize(
    ("simulation", "free", "code"),
    [
        (Simulation(problem="no"), 10**12, "packages-refused"),
        (Simulation(changes=(Change(name="nvidia-dkms-570", before="1"),)), 10**12, None),
        (Simulation(changes=(Change(name="firefox", before="1"),)), 10**12, "removal-refused"),
        (Simulation(changes=(Change(name="ssh", before="1"),)), 10**12, "removal-protected"),
        (Simulation(changes=(Change(name="firefox", before="2", after="1"),), downgraded=("firefox",)), 10**12, "downgrade-refused"),
        (Simulation(changes=(Change(name="libcuda1", before="2", after="1"),), downgraded=("libcuda1",)), 10**12, None),
        (Simulation(disk_bytes=9 * 10**9, download_bytes=1), 9 * 10**9, "space-too-small"),
        (Simulation(disk_bytes=9 * 10**9, download_bytes=1), 10 * 10**9, None),
        (Simulation(disk_bytes=9 * 10**9), None, None),
    ],
)
def test_a_transaction_is_refused_before_it_starts(simulation: Simulation, free: int | None, code: str | None) -> None:
    action = installing("apt", "t", "t", ("x",), may_remove=("nvidia-*", "ssh"), may_downgrade=("libcuda1*",))
    host = Answers(free=free)
    if code is None:
        preflight.check(action, simulation, host)
        return
    with pytest.raises(PreflightError) as refusal:
        preflight.check(action, simulation, host)
    assert refusal.value.code == code


# --- repositories ---------------------------------------------------------------------------------


def test_a_repository_is_confined_to_its_key_in_the_deb822_format() -> None:
    url = "https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/"
    actions = {action.id: action for action in apt_repository.nvidia_repository(url)}
    source, key = actions["repository.source"], actions["repository.key"]
    assert isinstance(source, Write)
    assert isinstance(key, Write)
    assert source.path == "/etc/apt/sources.list.d/cuda-debian12-x86_64.sources"
    assert source.text == f"Types: deb\nURIs: {url}\nSuites: /\nSigned-By: /etc/apt/keyrings/cuda-archive-keyring.gpg\n"
    assert key.path == "/etc/apt/keyrings/cuda-archive-keyring.gpg"
    assert key.copy_of is not None
    assert key.binary_key


def test_a_branch_is_held_by_a_pin() -> None:
    pin = apt_repository.branch_pin("570")
    assert pin.text is not None
    assert pin.text.endswith("Pin: version 570.*\nPin-Priority: 900\n")
    assert pin.done_when == (FileIs(path=pin.path, text=pin.text),)


def test_a_branch_behind_the_installed_one_is_pinned_above_what_is_there() -> None:
    pin = apt_repository.branch_pin("570", older=True)
    assert pin.text is not None
    assert pin.text.endswith("Pin: version 570.*\nPin-Priority: 1001\n")


def test_nothing_goes_back_to_an_older_version_unless_the_plan_says_so() -> None:
    forth = installing("apt", "t", "t", ("nvidia-open=580.*",))
    back = installing("apt", "t", "t", ("nvidia-open=570.*",), may_downgrade=("*nvidia*",))
    assert "--allow-downgrades" not in (*APT.argv(forth), *shown(forth))
    assert "--allow-downgrades" in APT.argv(back)
    assert shown(back) == ("apt-get", "install", "--allow-downgrades", "nvidia-open=570.*")


# --- the others -----------------------------------------------------------------------------------

DNF = """\
Dependencies resolved.
================================================================================
 Package            Arch     Version                Repository             Size
================================================================================
Installing:
 nvidia-open        noarch   3:580.82.07-1.el9      cuda-rhel9-x86_64     8.2 k
Installing dependencies:
 nvidia-driver      x86_64   3:580.82.07-1.el9      cuda-rhel9-x86_64      65 M
Removing dependent packages:
 kmod-nvidia-latest-dkms
                    x86_64   3:570.1-1.el9          @cuda-rhel9-x86_64     49 M

Transaction Summary
================================================================================
Install  2 Packages
Remove   1 Package

Total download size: 65 M
Installed size: 1.5 G
Operation aborted.
"""


def test_dnfs_table_is_read() -> None:
    found = dnf.parse(DNF)
    assert found.changes == (
        Change(name="nvidia-open", after="3:580.82.07-1.el9"),
        Change(name="nvidia-driver", after="3:580.82.07-1.el9"),
        Change(name="kmod-nvidia-latest-dkms", before="3:570.1-1.el9"),
    )
    assert (found.download_bytes, found.disk_bytes) == (65 << 20, round(1.5 * (1 << 30)))


def test_what_dnf_would_take_back_is_refused_unless_the_plan_names_it() -> None:
    rows = " nvidia-driver      x86_64   3:570.1-1.el9          cuda-rhel9-x86_64      65 M\n"
    found = dnf.parse(f"Downgrading:\n{rows}\nTransaction Summary\nDowngrade  1 Package\nOperation aborted.\n")
    assert (found.downgraded, found.replaced) == (("nvidia-driver",), (Change(name="nvidia-driver", before="", after="3:570.1-1.el9"),))
    with pytest.raises(PreflightError) as caught:
        preflight.check(installing("dnf", "t", "t", ("nvidia-open",)), found, Answers())
    assert caught.value.code == "downgrade-refused"
    preflight.check(installing("dnf", "t", "t", ("nvidia-open",), may_downgrade=("*nvidia*",)), found, Answers())


def test_a_removal_that_was_not_read_stops_everything() -> None:
    found = dnf.parse(DNF.replace("Remove   1 Package", "Remove   2 Packages"))
    assert found.problem == Phrase(key="manager.dnf.unread", params={"count": 2})


def test_dnf_goes_back_by_exact_versions_and_leaves_alone_what_others_did() -> None:
    manager = base.manager("dnf")
    before = Snapshot(manager="dnf", packages={"a": Installed(version="1-1"), "c": Installed(version="1-1")})
    after = Snapshot(manager="dnf", packages={"a": Installed(version="2-1"), "b": Installed(version="1-1"), "c": Installed(version="2-1")})
    found = manager.restore(before, after, Kept(), frozenset(("a", "b")))
    assert [argv[-2:] for argv in found] == [("install", "a-1-1"), ("remove", "b")]


TWICE_5 = 'nvidia-driver-3:570.1-1.el9.x86_64\n duplicate with "nvidia-driver-3:580.2-1.el9.x86_64"\n'
TWICE = "nvidia-driver-3:570.1-1.el9.x86_64 is a duplicate with nvidia-driver-3:580.2-1.el9.x86_64\n"


class Dnf4(Answers):
    """A machine whose driver's upgrade was cut off: dnf says so in its words, and what a removal would take."""

    goes: tuple[str, ...] = ("nvidia-driver",)
    told: str = TWICE

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0) -> Result:
        if argv[:2] == ("rpm", "-q"):
            rows = ("3:570.1-1.el9", "3:580.2-1.el9") if argv[-1] == "nvidia-driver" else ()
            return Result(stdout="".join(f"{argv[-1]}\t{version}\tx86_64\n" for version in rows), status=0)
        if argv[0] == "rpm":
            return Result(status=0)
        if "check" in argv:
            return Result(stdout=self.told, status=1)
        table = "".join(f" {name}  x86_64  3:570.1-1.el9  @cuda  49 M\n" for name in self.goes)
        return Result(stdout=f"Removing:\n{table}\nRemove  {len(self.goes)} Packages\nOperation aborted.\n", status=1)


OLD = ("dnf", "-y", "--setopt=clean_requirements_on_remove=False", "remove", "nvidia-driver-3:570.1-1.el9.x86_64")


def test_an_upgrade_that_dnf_was_cut_off_in_is_ended_by_name_and_a_healthy_system_is_left_alone() -> None:
    manager, ours = base.manager("dnf"), frozenset(("nvidia-driver",))
    assert manager.repair(Answers({"rpm": Result(status=0), "dnf": Result(status=0)}), ours) == ()
    assert manager.repair(Dnf4(), ours) == (OLD, ("dnf", "-y", "reinstall", "nvidia-driver-3:580.2-1.el9.x86_64"))
    # What no action of ours names is nobody's of ours.
    assert manager.repair(Dnf4(), frozenset(("nvidia",))) == ()
    # A dnf that cannot be asked is no sign of anything.
    assert manager.repair(Answers({"rpm": Result(status=1), "dnf": Result(status=1)}), ours) == (("rpm", "--rebuilddb"),)


@pytest.mark.parametrize("told", [TWICE, TWICE_5], ids=["dnf 4", "dnf 5"])
def test_what_a_removal_would_take_along_is_left_to_a_person_in_either_dnfs_words(told: str) -> None:
    manager, host = base.manager("dnf"), Dnf4()
    host.goes, host.told = ("nvidia-driver", "somebodys"), told
    assert manager.repair(host, frozenset(("nvidia-driver",))) == ()
    found = manager.simulate(installing("dnf", "t", "t", ("nvidia-driver",)), host)
    both = "nvidia-driver-3:570.1-1.el9.x86_64 nvidia-driver-3:580.2-1.el9.x86_64"
    assert found.problem == Phrase(key="manager.dnf.twice", params={"packages": both})


CONFLICT = """\
Error:
 Problem: problem with installed package lab-rival-1.0-1.noarch
  - package lab-driver-2.0-1.noarch conflicts with lab-rival provided by lab-rival-1.0-1.noarch
  - conflicting requests
(try to add '--allowerasing' to command line to replace conflicting packages)
"""


def test_dnf_says_its_problem_in_the_lines_below_the_word() -> None:
    found = base.manager("dnf").cause(CONFLICT)
    assert isinstance(found, Phrase)
    assert str(found.params["text"]).startswith("problem with installed package lab-rival-1.0-1.noarch\n  - package lab-driver")


@pytest.mark.parametrize("name", ["zypper", "pacman"])
def test_a_manager_that_was_never_run_refuses_to_start(name: ManagerName) -> None:
    manager = base.manager(name)
    action = installing("apt", "t", "t", ("nvidia",))
    with pytest.raises(PreflightError) as refusal:
        preflight.check(action, manager.simulate(action, Answers()), Answers())
    assert refusal.value.code == "packages-refused"
    assert manager.argv(action)[0] == name


def test_a_key_comes_out_of_its_armour_and_a_bare_one_stays() -> None:
    bare = bytes(range(256)) * 3
    body = base64.encodebytes(bare).decode()
    armoured = f"-----BEGIN PGP PUBLIC KEY BLOCK-----\nComment: lab\n\n{body}=AbCd\n-----END PGP PUBLIC KEY BLOCK-----\n"
    assert apt_repository.without_armour(armoured.encode()) == bare
    assert apt_repository.without_armour(bare) == bare


def test_a_package_whose_file_went_with_another_is_unpacked_again(tmp_path: Path) -> None:
    info = tmp_path / "var/lib/dpkg/info"
    info.mkdir(parents=True)
    (tmp_path / "usr/lib").mkdir(parents=True)
    for name, files in {"libold:amd64": ("liba.so.3",), "whole": ("b",), "settled": ()}.items():
        (info / f"{name}.md5sums").write_text("".join(f"{'0' * 32}  usr/lib/{file}\n" for file in files))
    (tmp_path / "usr/lib/b").touch()
    (info / "settled.md5sums").write_text(f"{'0' * 32}  etc/removed-by-hand\n")
    host = RootedHost(str(tmp_path), LocalHost())
    kept = Kept(files={f"{name}=1.0": f"/kept/{name}_1.0_amd64.deb" for name in ("libold", "whole", "settled")})

    one = Installed(version="1.0", architecture="amd64", status="ii", automatic=False, held=False)
    names: tuple[str, ...] = ("libold", "whole", "settled")
    there: dict[str, Installed] = dict.fromkeys(names, one)
    now = Snapshot(manager="apt", packages=there)
    newer = {**there, "libold": msgspec.structs.replace(one, version="2.0")}

    unpack, configure = APT.unpack_again(kept, now, host)
    assert APT.unpack_again(kept, Snapshot(manager="apt", packages=newer), host) == ()
    assert unpack[-2:] == ("--unpack", "/kept/libold_1.0_amd64.deb")
    assert configure[-2:] == ("--configure", "-a")
    (tmp_path / "usr/lib/liba.so.3").symlink_to("/nowhere")
    assert APT.unpack_again(kept, now, host) == ()
