"""Reading package indexes: what the pages and the metadata say, what is refused, and that nobody waits longer than allowed."""

from __future__ import annotations

import io
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from steps.catalog import frameworks, overlay
from steps.errors import PreflightError
from steps.host.base import Result
from steps.host.local import LocalHost
from steps.host.web import Unreachable, Web, shown, within
from steps.knowledge import releases, update
from steps.knowledge.source import Source
from steps.managers import index
from steps.managers.index import Garbled, Wheel
from steps.model.machine import Machine
from steps.model.plan import Installer
from steps.model.software import Os
from tests.index_server import Index, newer_world, serving


def read(address: str, *, seconds: float = 20.0) -> tuple[list[str], Source]:
    """Return what could not be read, filled as the source is used, and the source."""
    said: list[str] = []
    return said, Source(Installer(index_url=address), seconds=seconds, said=said.append)


@pytest.mark.parametrize("json", [True, False])
def test_a_newer_release_is_read_with_its_pins_pythons_and_partners(json: bool) -> None:
    world = newer_world()
    world.json = json
    with serving(world) as address:
        said, source = read(address)
        projects = source.projects(releases.PROJECTS)
        (torch,) = releases.torch(source, projects)
        (tensorflow,) = releases.tensorflow(source, projects)
        (jax,) = releases.jax(source, projects)

    assert said == []
    assert (torch.version, torch.default_variant, torch.glibc_by_tag, torch.uploaded) == ("2.16.0", "cu132", "2.28", "2027-01-14")
    assert torch.pythons == ("3.12", "3.13", "3.14", "3.15")
    assert torch.pythons_aarch64 is None  # the same as on x86_64
    assert torch.pins == ("nvidia-cudnn-cu13==9.30.0.1", "nvidia-nccl-cu13==2.31.1")
    assert (torch.torchvision, torch.torchaudio) == (("0.30.0",), ("2.12.0",))
    assert (tensorflow.version, tensorflow.cuda_major, tensorflow.numpy) == ("2.22.0", 13, ("numpy>=2.1",))
    assert (jax.version, jax.pythons, jax.cuda12, jax.cuda13) == ("0.13.0", ("3.13",), False, True)


def test_sizes_come_from_the_page_or_from_the_server() -> None:
    said_by_page, said_by_server = newer_world(), newer_world()
    said_by_server.json = False
    with serving(said_by_page) as address:
        _, source = read(address)
        assert releases.torch(source, source.projects(releases.PROJECTS))[0].size_mb == 540.0
    with serving(said_by_server) as address:
        _, source = read(address)
        assert releases.torch(source, source.projects(releases.PROJECTS))[0].size_mb == 0.0  # the stand-in's wheels are tiny


def test_metadata_inside_a_wheel_is_read_through_a_few_parts_of_it() -> None:
    world = Index()
    world.add("torch-9.0-cp312-cp312-manylinux_2_28_x86_64.whl", ("numpy<3",), beside=False, padding=12_000_000)
    with serving(world) as address:
        (wheel,) = index.project(Web(), address, "torch")
        found = index.metadata(Web(), wheel)
        parts = [path for path, headers in world.asked if "Range" in headers]

    assert found.requires == ("numpy<3",)
    assert 1 <= len(parts) <= 3


def test_a_server_that_sends_no_parts_costs_no_whole_wheel() -> None:
    world = Index()
    world.parts = False
    world.add("torch-9.0-cp312-cp312-manylinux_2_28_x86_64.whl", beside=False, padding=12_000_000)
    with serving(world) as address:
        (wheel,) = index.project(Web(), address, "torch")
        with pytest.raises((Garbled, Unreachable)):
            index.metadata(Web(), wheel)


def test_a_project_that_the_index_does_not_have_is_empty_and_a_broken_page_is_not() -> None:
    world = Index()
    world.projects["torch"] = []
    world.bodies["/simple/tensorflow/"] = b"<h1>log in</h1>"
    with serving(world) as address:
        assert index.project(Web(), address, "jax") == ()
        with pytest.raises(Garbled):
            index.project(Web(), address, "tensorflow")


def test_a_slow_index_costs_no_more_than_the_limit() -> None:
    world = newer_world()
    world.delay = 3.0
    with serving(world) as address:
        said, source = read(address, seconds=0.6)
        began = time.monotonic()
        projects = source.projects(("torch", "jax"))
        assert time.monotonic() - began < 1.5
    assert projects == {"torch": None, "jax": None}
    assert said == [] or "no answer in time" in said[0]


def test_an_index_that_trickles_is_given_up() -> None:
    world = newer_world()
    world.drip = 0.2
    with serving(world) as address:
        web = Web(seconds=0.5)
        began = time.monotonic()
        with pytest.raises(Unreachable):
            index.project(web, address, "torch")
        assert time.monotonic() - began < 3


def test_questions_that_do_not_end_are_left_behind() -> None:
    def endless() -> int:
        time.sleep(2)
        return 2

    began = time.monotonic()
    assert within(0.3, [lambda: 1, endless]) == [1, None]
    assert time.monotonic() - began < 1


def test_no_network_is_said_in_plain_words() -> None:
    with pytest.raises(Unreachable) as refused:
        Web(seconds=2).get("http://127.0.0.1:9/simple/torch/")
    assert refused.value.reason == "127.0.0.1: Connection refused"


def test_a_name_and_password_go_to_the_index_and_nowhere_else() -> None:
    first, second = Index(), Index()
    second.add("torch-9.0-cp312-cp312-manylinux_2_28_x86_64.whl")
    with serving(first) as address, serving(second) as other:
        first.redirects["/simple/torch/"] = f"{other}/torch/"
        there = address.replace("://", "://ada:geheim@")
        index.project(Web(), there, "torch")

    assert first.asked[0][1]["Authorization"] == "Basic YWRhOmdlaGVpbQ=="
    assert "Authorization" not in second.asked[0][1]
    assert "geheim" not in shown(there)


def test_a_failure_names_neither_password_nor_path() -> None:
    with pytest.raises(Unreachable) as refused:
        Web(seconds=1).get("http://ada:geheim@127.0.0.1:9/secret-token/")
    assert "geheim" not in str(refused.value)
    assert "secret-token" not in str(refused.value)


def test_a_page_cannot_lead_to_files_of_this_machine(tmp_path: Path) -> None:
    world = Index()
    world.add("torch-9.0-cp312-cp312-manylinux_2_28_x86_64.whl")
    world.projects["torch"][0]["url"] = "file:///etc/passwd"
    with serving(world) as address:
        assert index.project(Web(local=True), address, "torch") == ()
        world.redirects["/simple/jax/"] = "file:///etc/passwd"
        with pytest.raises(Unreachable):
            index.project(Web(local=True), address, "jax")
    with pytest.raises(Unreachable):
        Web().get(f"file://{tmp_path}/")


def test_an_index_in_a_folder_is_read_too(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "index.html").write_text('<a href="../files/torch-9.0-cp312-cp312-linux_x86_64.whl">x</a>')
    (wheel,) = index.project(Web(local=True), f"file://{tmp_path}", "torch")
    assert (wheel.version, wheel.python, wheel.address) == (
        "9.0",
        "3.12",
        f"file://{tmp_path}/files/torch-9.0-cp312-cp312-linux_x86_64.whl",
    )


GOOD = "torch-9.0-cp312-cp312-manylinux_2_28_x86_64.whl"


@pytest.mark.parametrize(
    "page",
    [
        f'<a href="http://[::1/{GOOD}">x</a>',
        f'<a href="http://[::1/x#{GOOD}">x</a>',
        f'<a href="torch-{"1" * 5000}-cp312-cp312-linux_x86_64.whl">x</a>',
        f'<a href="torch-9.{"1" * 5000}-cp312-cp312-linux_x86_64.whl">x</a>',
        f'<a href="torch-9.0-cp3{"1" * 5000}-cp3{"1" * 5000}-manylinux_2_{"1" * 5000}_x86_64.whl">x</a>',
        "<![x[",
        "<!x[<a>",
    ],
)
def test_what_is_wrong_on_a_page_costs_only_itself(tmp_path: Path, page: str) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "jax").mkdir()
    (tmp_path / "torch" / "index.html").write_text(f'<a href="{GOOD}">x</a>{page}')
    (tmp_path / "jax" / "index.html").write_text(page)
    _, source = read(f"file://{tmp_path}")
    found = source.projects(("torch", "jax"))
    good = [wheel for wheel in found["torch"] or () if wheel.python and wheel.glibc]
    assert found["torch"] is None or [wheel.file for wheel in good] == [GOOD]
    assert not [wheel for wheel in found["jax"] or () if wheel.python or wheel.glibc]


def test_an_address_that_is_none_in_json_costs_only_itself() -> None:
    world = Index()
    world.add(GOOD)
    world.add("torch-9.1-cp312-cp312-manylinux_2_28_x86_64.whl")
    world.projects["torch"][1]["url"] = "http://[::1/x.whl"
    with serving(world) as address:
        assert [wheel.version for wheel in index.project(Web(), address, "torch")] == ["9.0"]


@pytest.mark.parametrize("harm", ["encrypted", "packed", "cut"])
def test_a_wheel_that_cannot_be_opened_is_said_and_not_known(harm: str) -> None:
    world = Index()
    world.add(GOOD, beside=False)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("torch-9.0.dist-info/METADATA", "Name: torch\n" * 200)
    data = bytearray(packed.getvalue())
    directory = data.index(b"PK\x01\x02")
    if harm == "encrypted":
        data[6] |= 1
        data[directory + 8] |= 1
    elif harm == "packed":
        data[58:70] = b"\xff" * 12
    else:
        del data[20:40]
    world.bodies[f"/files/{GOOD}"] = bytes(data)
    with serving(world) as address:
        said, source = read(address)
        wheels = source.projects(("torch",))["torch"] or ()
        assert len(wheels) == 1
        assert source.metadata(wheels) == {}
    assert len(said) == 1


def test_a_question_that_fails_in_an_unthought_of_way_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> int:
        raise KeyError("x")

    assert within(1.0, [lambda: 1, broken]) == [1, None]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("address", ["http://[::1/x", "http://h:99999999/x", "http://" + "a" * 300 + "/"])
def test_an_address_that_is_none_is_not_reached(address: str) -> None:
    with pytest.raises(Unreachable):
        Web(seconds=1).get(address)


def test_an_index_of_another_kind_is_named_and_refused() -> None:
    with pytest.raises(PreflightError) as refused:
        index.indexes("ftp://wheels.example.org/simple", ())
    assert refused.value.params == {"index": "wheels.example.org"}


@pytest.mark.parametrize(
    ("tag", "python", "x86", "glibc"),
    [
        ("cp312-cp312-manylinux_2_28_x86_64", "3.12", True, "2.28"),
        ("cp37-cp37m-manylinux1_x86_64", "3.7", True, "2.5"),
        ("cp313-cp313t-manylinux_2_28_x86_64", None, True, "2.28"),
        ("cp310-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64", None, True, "2.17"),
        ("cp312-cp312-manylinux_2_28_aarch64", "3.12", False, "2.28"),
        ("cp312-cp312-musllinux_1_2_x86_64", "3.12", False, None),
        ("cp312-cp312-win_amd64", "3.12", False, None),
        ("py3-none-any", None, False, None),
    ],
)
def test_a_wheels_name_says_what_it_is_for(tag: str, python: str | None, x86: bool, glibc: str | None) -> None:
    wheel = Wheel(file="x", address="x", version="1", tag=tag)
    assert (wheel.python, wheel.linux("x86_64"), wheel.glibc) == (python, x86, glibc)


@pytest.mark.net
def test_what_the_real_index_says_is_what_the_tables_hold() -> None:
    """Every row that is read again says the same as the built-in one: the two were made by different programs."""
    overlay.use({})
    said: list[str] = []
    source = Source(Installer(), seconds=100.0, said=said.append)
    projects = source.projects(("torch", "torchvision", "torchaudio"))
    if projects["torch"] is None:
        pytest.skip(f"no package index: {said}")
    known = {row.version: row for row in frameworks.torch_releases()}
    rows = [row for row in releases.torch(source, projects) if row.version in known]
    assert len(rows) >= 3
    for row in rows:
        built_in = known[row.version]
        assert (row.default_variant, row.pythons, row.pins, row.glibc_by_tag, row.size_mb, row.uploaded) == (
            built_in.default_variant,
            built_in.pythons,
            built_in.pins,
            built_in.glibc_by_tag,
            built_in.size_mb,
            built_in.uploaded,
        )
        assert set(row.torchvision) <= set(built_in.torchvision)


# --- driver branches of the machine's package lists ---------------------------------------------------


class Lists(LocalHost):
    """A machine whose apt offers these driver packages."""

    packages: Mapping[str, str] = {
        "nvidia-driver-580": "580.999.9-0ubuntu1",
        "nvidia-driver-580-server": "580.126.9-0ubuntu1",
        "nvidia-driver-575": "580.999.9-0ubuntu1",  # transitional: the name of one branch, the driver of another
        "nvidia-driver-660-open": "660.10.1-0ubuntu1",
    }

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0) -> Result:
        if argv[:2] == ("apt-cache", "pkgnames"):
            return Result(stdout="\n".join(name for name in self.packages if name.startswith(argv[2])), status=0)
        if argv[:2] == ("apt-cache", "policy"):
            known = {"apt": "2.7", **self.packages}
            entry = "{0}:\n  Candidate: {1}\n  Version table:\n     {1} 500\n        500 http://x noble/main amd64 Packages\n"
            return Result(stdout="".join(entry.format(name, known[name]) for name in argv[2:] if name in known), status=0)
        return Result(status=127)


def test_a_known_branch_gets_its_newest_release_and_an_unknown_one_is_only_named() -> None:
    noble = Machine(os=Os(id="ubuntu", version="24.04", arch="x86_64"))
    made = update.prepared(noble, Lists(), Installer(index_url="http://127.0.0.1:9/simple"), today="2027-03-01", seconds=3.0)

    assert made.untold == ("660",)
    assert list(made.files) == ["drivers.toml"]
    assert [(one.table, one.row, one.field, one.after) for one in made.changes] == [("driver", "580", "latest", "580.999.9")]
    assert any("Connection refused" in one for one in made.unread)


def test_an_earlier_overlay_is_no_reason_to_leave_a_release_out() -> None:
    with serving(newer_world()) as address:
        first = update.prepared(Machine(), Lists(), Installer(index_url=address), today="2027-03-01", seconds=20.0)
        overlay.use(first.files)
        try:
            again = update.prepared(Machine(), Lists(), Installer(index_url=address), today="2027-03-02", seconds=20.0)
        finally:
            overlay.use({})
    assert again.changes == ()
    assert {name: overlay.read(name, update.text(file), "2027-03-02") for name, file in again.files.items()} == again.files
    assert {change.row for change in first.changes} == {"2.16.0", "2.22.0", "0.13.0"}
