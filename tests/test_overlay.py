"""A person's own tables: what they add, what they can never change, and what refuses them."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from steps.catalog import frameworks, overlay, stack
from steps.catalog.overlay import Refused
from steps.catalog.tables import Laid, all_tables
from steps.compat import solve
from steps.headless import knowing
from steps.host.own import OwnFolder
from steps.knowledge import age
from steps.model.machine import Machine
from steps.model.profile import Profile

TODAY = "2027-04-15"
TORCH = """\
schema = 1
checked = "2027-03-01"
site = "pypi.org"

[[release]]
version = "2.16.0"
uploaded = "2027-01-14"
default_variant = "cu132"
glibc_by_tag = "2.28"
pythons = ["3.12", "3.13"]
torchvision = ["0.30.0"]
pins = ["nvidia-cudnn-cu13==9.30.0.1"]
size_mb = 540.0
"""


@pytest.fixture(autouse=True)
def _built_in() -> Iterator[None]:
    overlay.use({})
    yield
    overlay.use({})


def use(name: str, text: str) -> None:
    file = overlay.read(name, text, TODAY)
    assert file is not None
    assert not isinstance(file, Refused)
    overlay.use({name: file})


def refused(text: str, name: str = "torch.toml") -> Refused:
    found = overlay.read(name, text, TODAY)
    assert isinstance(found, Refused)
    return found


# --- what it adds -----------------------------------------------------------------------------------


def test_a_new_release_is_known_with_low_confidence_and_says_where_it_is_from() -> None:
    before = frameworks.torch_releases()
    use("torch.toml", TORCH)
    row = frameworks.torch_releases()[0]

    assert (row.version, row.confidence, row.pythons) == ("2.16.0", "low", ("3.12", "3.13"))
    assert row.source == "package index metadata of pypi.org, read on 2027-03-01"
    assert {variant.name for variant in row.variant} == {"cpu", "cu132"}
    assert frameworks.torch_releases()[1:] == before


def test_gpu_code_of_a_new_release_is_a_likeness_and_never_a_fact() -> None:
    use("torch.toml", TORCH)
    variant = frameworks.variant_of(frameworks.torch_releases()[0], "cu132")
    assert variant is not None
    assert (variant.arch, variant.min_arch) == (None, "sm_75")
    assert variant.note == "GPU code taken from torch 2.15.0; an index does not say it"


def test_a_known_release_keeps_what_an_index_cannot_say() -> None:
    known = frameworks.torch_release("2.14.1")
    assert known is not None
    use("torch.toml", TORCH.replace("2.16.0", "2.14.1"))
    row = frameworks.torch_release("2.14.1")
    assert row is not None
    assert (row.variant, row.confidence, row.default_variant) == (known.variant, known.confidence, known.default_variant)
    assert row.torchvision == (*known.torchvision, "0.30.0")
    assert row.pythons == ("3.12", "3.13")


def test_rules_see_the_overlay_and_forget_it_again() -> None:
    def codes() -> set[str]:
        machine, profile = Machine(), msgspec.structs.replace(Profile(), frameworks={"torch": "2.16.0"})
        return {finding.code for finding in solve.judge_frameworks(machine, profile)}

    without = codes()
    use("torch.toml", TORCH)
    laid = codes()
    overlay.use({})
    assert laid != without
    assert codes() == without


def test_a_branch_gets_a_newer_release_and_nothing_else() -> None:
    before = stack.branches()
    use("drivers.toml", 'schema = 1\nchecked = "2027-03-01"\nsite = "localhost"\n[[branch]]\nname = "580"\nlatest = "580.999.1"\n')
    after = stack.branches()
    assert after["580"] == msgspec.structs.replace(before["580"], latest="580.999.1")
    assert {name: row for name, row in after.items() if name != "580"} == {name: row for name, row in before.items() if name != "580"}


@pytest.mark.parametrize(("name", "latest"), [("580", "570.9.9"), ("580", "580.1.1"), ("999", "999.1.1")])
def test_an_older_release_and_an_unknown_branch_change_nothing(name: str, latest: str) -> None:
    before = stack.branches()
    use("drivers.toml", f'schema = 1\nchecked = "2027-03-01"\nsite = "localhost"\n[[branch]]\nname = "{name}"\nlatest = "{latest}"\n')
    assert stack.branches() == before


def test_the_table_says_the_new_day_and_the_new_rows() -> None:
    built_in = {one.name: one for one in all_tables()}
    file = overlay.read("torch.toml", TORCH, TODAY)
    assert isinstance(file, overlay.TorchFile)
    table = {one.name: one for one in all_tables({"torch.toml": Laid(path="/there/torch.toml", file=file)})}["torch.toml"]
    assert (table.checked, table.rows, table.overlay) == ("2027-03-01", built_in["torch.toml"].rows + 1, "/there/torch.toml")


# --- what refuses it --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('version = "2.16.0"', 'version = "2.16.0 --index-url=http://evil"', "release[0].version"),
        ('version = "2.16.0"', 'version = "../../x"', "release[0].version"),
        ('version = "2.16.0"', 'version = "2.16.0\\n"', "release[0].version"),
        ('version = "2.16.0"', "version = 2.16", "release[0].version"),
        ("nvidia-cudnn-cu13==9.30.0.1", "--extra-index-url=http://evil", "release[0].pins[0]"),
        ("nvidia-cudnn-cu13==9.30.0.1", "x @ http://evil/x.whl", "release[0].pins[0]"),
        ("nvidia-cudnn-cu13==9.30.0.1", "x==1\\u001b[2J", "release[0].pins[0]"),
        ('default_variant = "cu132"', 'default_variant = "cu132/../.."', "release[0].default_variant"),
        ('pythons = ["3.12", "3.13"]', "pythons = []", "release[0].pythons"),
        ('pythons = ["3.12", "3.13"]', 'pythons = ["3.12; rm -rf /"]', "release[0].pythons[0]"),
        ("size_mb = 540.0", "size_mb = 1e300", "release[0].size_mb"),
        ("size_mb = 540.0", "size_mb = nan", "release[0].size_mb"),
        ("size_mb = 540.0", 'size_mb = 540.0\narch = ["sm_37"]', "release[0].arch"),
        ('checked = "2027-03-01"', 'checked = "tomorrow"', "checked"),
        ('checked = "2027-03-01"', 'checked = "2027-02-30"', "checked"),
        ('checked = "2027-03-01"', 'checked = "2027-04-16"', "checked"),
        ('site = "pypi.org"', 'site = "pypi.org\\u001b]0;x\\u0007"', "site"),
        ("schema = 1", "schema = 2", "schema"),
        ("schema = 1", 'schema = 1\nurl = "http://evil"', "url"),
        ("[[release]]", "[[release]", ""),
    ],
)
def test_a_hostile_or_broken_file_is_refused_with_its_key(old: str, new: str, key: str) -> None:
    found = refused(TORCH.replace(old, new))
    assert (found.file, found.key) == ("torch.toml", key)
    assert found.reason.isascii()
    assert found.reason.isprintable()


def test_an_endless_file_a_deep_one_and_a_row_twice_are_refused() -> None:
    assert refused("#" * (overlay.MOST_BYTES + 1)).reason == "more than 1 MB"
    assert refused("a = " + "[" * 100_000).key == ""
    assert refused(TORCH + TORCH.partition("\n\n")[2]).key == "2.16.0"


@pytest.mark.parametrize(
    ("added", "reason"),
    [
        ("schema = " + "1" * 5000, "a number of more than 20 digits"),
        ("schema = " + "1_1" * 50, "a number of more than 20 digits"),
        (".".join("a" * 9) + " = 1", "a key of more than 8 parts"),
        ("[" + " . ".join(['"a.b"'] * 9) + "]", "a key of more than 8 parts"),
        ("x = {" + ".".join("a" * 5000) + " = 1}", "a key of more than 8 parts"),
        ('x = ["""\n""", {' + ".".join("a" * 5000) + ' = 1}, ""]', "text over several lines"),
        ('x = "' + "é" * (overlay.MOST_BYTES // 2) + '"', "more than 1 MB"),
    ],
)
def test_what_would_hold_or_stop_the_parser_is_refused_unread(added: str, reason: str) -> None:
    assert refused(f"{added}\n{TORCH}").reason == reason


@pytest.mark.parametrize("sign", ['"', "\\", "'", ".", "a.", '"\\', "1_", "[", "{"])
def test_no_line_holds_the_reader_for_long(sign: str) -> None:
    began = time.process_time()
    refused(sign * (overlay.MOST_BYTES // len(sign)))
    assert time.process_time() - began < 5


def test_names_and_sites_with_dots_are_no_deep_keys() -> None:
    text = TORCH.replace("pypi.org", "a.b.c.d.e.f.g.h.i.j") + "# a. b. c. d. e. f. g. h. i. j. k.\n"
    assert isinstance(overlay.read("torch.toml", text, TODAY), overlay.TorchFile)


def test_what_the_parser_itself_refuses_stops_no_verb(monkeypatch: pytest.MonkeyPatch) -> None:
    def loads(_: str) -> None:
        raise ValueError("Exceeds the limit (4300 digits) for integer string conversion")

    monkeypatch.setattr("steps.catalog.overlay.tomllib.loads", loads)
    assert refused(TORCH).reason.startswith("Exceeds the limit")


def test_a_refused_file_leaves_the_built_in_table_and_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "bringup" / "knowledge"
    folder.mkdir(parents=True)
    (folder / "torch.toml").write_text(TORCH.replace("2.16.0", "evil"))
    (folder / "jax.toml").write_text("schema = 1\n")
    before = frameworks.torch_releases()
    known = knowing.lay({"XDG_DATA_HOME": str(tmp_path)})

    assert frameworks.torch_releases() == before
    assert set(known.refused) == {f"{folder}/torch.toml", f"{folder}/jax.toml"}
    found = {finding.params["place"] for finding in knowing.notices(known, now=1_796_000_000.0) if finding.code == "overlay-refused"}
    assert found == {f"{folder}/torch.toml: release[0].version", f"{folder}/jax.toml: checked"}


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Return a folder that everybody may walk through; pytest's own are closed."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


# --- a folder of the person's own -------------------------------------------------------------------


def folder(path: Path) -> OwnFolder:
    return OwnFolder(str(path), uid=os.getuid(), gid=os.getgid())


def test_what_is_written_is_read_again_and_nothing_else_stays(tmp_path: Path) -> None:
    own = folder(tmp_path / "a" / "b")
    assert own.write("torch.toml", b"schema = 1\n") is None
    assert own.read("torch.toml", most=100) == "schema = 1\n"
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["torch.toml"]


def test_links_pipes_and_foreign_files_are_not_read(tmp_path: Path) -> None:
    own = folder(tmp_path)
    (tmp_path / "link.toml").symlink_to("/etc/hostname")
    os.mkfifo(tmp_path / "pipe.toml")
    assert own.read("link.toml", most=100) is None
    assert own.read("pipe.toml", most=100) is None
    assert own.read("missing.toml", most=100) is None
    if os.geteuid() == 0:
        (tmp_path / "foreign.toml").write_text("x")
        os.chown(tmp_path / "foreign.toml", 12345, 12345)
        assert own.read("foreign.toml", most=100) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can write for somebody else")
def test_root_leaves_nothing_of_its_own_in_a_home(open_folder: Path) -> None:
    home = open_folder / "home"
    home.mkdir()
    os.chown(home, 12345, 12345)
    own = OwnFolder(f"{home}/.local/share/bringup/knowledge", uid=12345, gid=12345)
    assert own.write("torch.toml", b"schema = 1\n") is None
    made = [home / ".local", home / ".local/share/bringup/knowledge", home / ".local/share/bringup/knowledge/torch.toml"]
    assert [(path.stat().st_uid, path.stat().st_gid) for path in made] == [(12345, 12345)] * 3

    (home / "trap").symlink_to("/etc")
    trapped = OwnFolder(f"{home}/trap", uid=12345, gid=12345)
    assert trapped.write("bringup-test.toml", b"x") is not None
    assert not Path("/etc/bringup-test.toml").exists()


# --- age --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("today", "codes"), [("2027-03-30", []), ("2027-03-31", ["knowledge-old", "knowledge-old-releases"])])
def test_tables_older_than_120_days_are_said(today: str, codes: list[str]) -> None:
    assert [finding.code for finding in age.notices(all_tables(), {}, today)] == codes


def test_an_update_makes_the_releases_young_and_the_drivers_stay_old() -> None:
    file = overlay.read("torch.toml", TORCH, TODAY)
    assert isinstance(file, overlay.TorchFile)
    laid = {name: Laid(path=name, file=file) for name in ("torch.toml", "tensorflow.toml", "jax.toml")}
    (old,) = age.notices(all_tables(laid), {}, "2027-04-15")
    assert (old.code, old.params["date"], old.params["days"]) == ("knowledge-old", "2026-11-30", 136)
