"""What is on offer here: asked of the machine's own indexes and of the Python index, kept for a while, and said in the plan."""

from __future__ import annotations

import gzip
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from steps.compat import solve
from steps.detect.machine import detect
from steps.headless import offering
from steps.host.base import Result
from steps.host.local import LocalHost
from steps.host.opening import open_host
from steps.host.web import Unreachable
from steps.knowledge import confirm, offers, update
from steps.knowledge.source import Source
from steps.managers import offered
from steps.managers.access import access
from steps.managers.apt_repository import BRANCH
from steps.managers.index import Garbled
from steps.managers.installer import settings
from steps.model.action import Packages, installing
from steps.model.finding import Finding
from steps.model.machine import Machine
from steps.model.offers import Offers, has_wheel, place_of
from steps.model.plan import Installer, Plan, Target
from steps.model.software import Os
from steps.planning import make_plan
from tests.index_server import newer_world, serving
from tests.test_command import GPU_BOX

POLICY = (Path(__file__).parent / "cases" / "apt" / "policy-noble.txt").read_text()
NOBLE = Machine(os=Os(id="ubuntu", version="24.04", arch="x86_64"))


class Told(LocalHost):
    """A machine whose programs say what the test wants; a command is known by its first words."""

    def __init__(self, told: Mapping[str, str | Result]) -> None:
        super().__init__()
        self.told = told
        self.ran: list[str] = []

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0) -> Result:
        line = " ".join(argv)
        self.ran.append(line)
        answer = next((answer for start, answer in self.told.items() if line.startswith(start)), Result(status=127))
        return Result(stdout=answer, status=0) if isinstance(answer, str) else answer


# --- the machine's own package lists -----------------------------------------------------------------


def test_versions_come_from_repositories_and_the_candidate_is_first() -> None:
    host = Told({"apt-cache policy": POLICY})
    found = offered.by_apt(host, ("nvidia-driver-580-open", "nvidia-driver-535", "nvidia-open", "cuda-drivers", "nvidia-driver-999"))
    assert found == {
        "nvidia-driver-580-open": ("580.126.09-0ubuntu0.24.04.1", "580.65.06-0ubuntu0.24.04.1"),
        "nvidia-driver-535": (),  # installed, and in no repository any more
        "nvidia-open": ("590.48.01-0ubuntu1", "595.1-0ubuntu1"),
        "cuda-drivers": (),
        "nvidia-driver-999": (),
    }


@pytest.mark.parametrize(
    "answer", ["", Result(status=127), Result(status=None), "apt:\n  Installed: 2\n  Candidate: 2\n  Version table:\n"]
)
def test_empty_or_missing_lists_say_nothing(answer: str | Result) -> None:
    assert offered.by_apt(Told({"apt-cache policy": answer}), ("nvidia-open",)) is None


def test_dnfs_cache_is_read_without_the_network() -> None:
    host = Told({"dnf -q -C repoquery": "bash 5.2.26-6.el10\nnvidia-open 580.65.06-1.el10\nnvidia-open 590.48.01-1.el10\n"})
    assert offered.by_dnf(host, ("nvidia-open", "cuda-drivers")) == {
        "nvidia-open": ("590.48.01-1.el10", "580.65.06-1.el10"),
        "cuda-drivers": (),
    }
    assert offered.by_dnf(Told({"dnf": ""}), ("nvidia-open",)) is None


def test_driver_branches_are_read_from_the_names_that_apt_knows() -> None:
    known = "nvidia-driver-620-open\nnvidia-driver-local\nnvidia-driver-580-server\nnvidia-tesla-535-driver\nnvidia-tesla-535-smi\n"
    host = Told({"apt-cache pkgnames nvidia-": known})
    names = offered.drivers(host)
    assert names == ("nvidia-driver-580-server", "nvidia-driver-620-open", "nvidia-tesla-535-driver")
    assert [offered.branch_of(name) for name in names] == ["580", "620", "535"]
    assert offered.branch_of("nvidia-driver-local") is None
    assert offered.upstream("1:580.126.09-0ubuntu1") == "580.126.09"


def test_a_driver_package_lists_its_cards() -> None:
    listed = (
        "Package: nvidia-driver-580\nModaliases: nvidia(pci:v000010DEd00002684sv*sd*bc03sc*i*, pci:v000010DEd000022BAsv*sd*bc03sc*i*)\n"
    )
    assert offered.gpus_of(Told({"apt-cache show": listed}), "nvidia-driver-580") == (
        "pci:v000010ded00002684sv*sd*bc03sc*i*",
        "pci:v000010ded000022basv*sd*bc03sc*i*",
    )
    assert offered.gpus_of(Told({"apt-cache show": "Package: x\n"}), "nvidia-driver-580") is None


# --- the record ---------------------------------------------------------------------------------------


def test_a_place_is_known_only_when_it_was_asked() -> None:
    here = Offers(here={"nvidia-driver-580": ("580.126.09-0ubuntu1",), "nvidia-open": ()}, added={"nvidia-open": ("580.1-1", "590.1-1")})
    assert place_of(None, ("nvidia-driver-580",)) is None
    assert place_of(Offers(), ("nvidia-driver-580",)) is None
    assert place_of(here, ("nvidia-driver-580",)) == "here"
    assert place_of(here, ("nvidia-driver-580=570.*",)) == "known"
    assert place_of(here, ("nvidia-open=590.*",)) == "added"
    assert place_of(here, ("nvidia-open=610.*",)) == "known"
    assert place_of(here, ("nvidia-driver-580", "never-asked")) is None


@pytest.mark.parametrize(
    ("tag", "python", "arch", "fits"),
    [
        ("cp312-cp312-manylinux_2_28_x86_64", "3.12", "x86_64", True),
        ("cp312-cp312-manylinux_2_28_x86_64", "3.13", "x86_64", False),
        ("cp312-cp312-manylinux_2_28_x86_64", "3.12", "aarch64", False),
        ("cp313-cp313t-manylinux_2_28_x86_64", "3.13", "x86_64", False),
        ("cp310-abi3-manylinux_2_28_x86_64", "3.13", "x86_64", True),
        ("cp310-abi3-manylinux_2_28_x86_64", "3.9", "x86_64", False),
        ("py3-none-any", "3.14", "aarch64", True),
        ("py3-none-manylinux_2_28_x86_64", "3.14", "x86_64", True),
        ("junk", "3.12", "x86_64", False),
    ],
)
def test_a_wheel_fits_a_python_and_a_processor(tag: str, python: str, arch: str, fits: bool) -> None:
    known = Offers(wheels={"torch": {"2.14.1": (tag,)}})
    assert has_wheel(known, "torch", "2.14.1", python, arch) is fits
    assert has_wheel(known, "torch", "2.99.0", python, arch) is False
    assert has_wheel(known, "jax", "0.1", python, arch) is None


# --- asking -------------------------------------------------------------------------------------------


def test_the_index_and_the_lists_are_asked_together() -> None:
    with serving(newer_world()) as address:
        found = offers.live(NOBLE, Told({"apt-cache policy": POLICY}), Installer(index_url=address), now=5.0, seconds=8.0)
    assert (found.asked, place_of(found, ("nvidia-driver-580-open",))) == (5.0, "here")
    assert has_wheel(found, "torch", "2.16.0", "3.13", "x86_64") is True
    assert has_wheel(found, "torch", "2.16.0", "3.11", "x86_64") is False
    assert has_wheel(found, "torch", "2.99.0", "3.12", "x86_64") is False  # withdrawn


def test_without_a_network_the_lists_still_answer_and_nothing_is_asked() -> None:
    found = offers.live(NOBLE, Told({"apt-cache policy": POLICY}), Installer(index_url="http://127.0.0.1:9/simple"), now=5.0, seconds=3.0)
    assert (found.wheels, found.added, found.asked) == (None, None, None)
    assert place_of(found, ("nvidia-driver-580-open",)) == "here"


def test_an_index_with_a_password_is_not_asked_and_neither_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def get(_: object, address: str, **__: object) -> None:
        asked.append(address)
        raise Unreachable("in no test")

    monkeypatch.setattr("steps.host.web.Web.get", get)
    hidden = Installer(index_hidden=True)
    said: list[str] = []
    source = Source(hidden, seconds=3.0, said=said.append)
    assert source.projects(("torch", "jax")) == {"torch": None, "jax": None}
    assert source.at(("https://download.pytorch.org/whl/cu126",), "torch") == [None]
    assert offers.live(Machine(), Told({}), hidden, now=1.0).wheels is None
    made = update.prepared(Machine(), Told({}), hidden, today="2027-03-01")
    assert not set(made.files) & {"torch.toml", "tensorflow.toml", "jax.toml"}
    assert made.unread == tuple(dict.fromkeys(said))
    assert asked == []


@pytest.mark.parametrize("way", ["environment", "netrc"])
def test_an_index_that_asks_for_a_password_gets_the_persons_and_nothing_else_does(way: str, tmp_path: Path) -> None:
    world = newer_world()
    world.login = "ada:s3cret"
    with serving(world) as address:
        host, port = address.removeprefix("http://").partition("/")[0].split(":")
        (tmp_path / ".netrc").write_text(f"default login eve password no\nmachine {host}\n  login ada\n  password s3cret\n")
        named = {"PIP_INDEX_URL": address.replace("//", "//ada:s3cret@")} if way == "environment" else {}
        environ = {**named, "XDG_CACHE_HOME": str(tmp_path / "cache")}
        home = str(tmp_path if way == "netrc" else tmp_path / "cache")
        who = access(LocalHost(), environ, home=home)
        installer = settings(LocalHost(), {**named, "PIP_CONFIG_FILE": "/dev/null"}, home=home, user=None, uid=1)
        if way == "netrc":
            installer = msgspec.structs.replace(installer, index_url=address)
        source = Source(installer, seconds=8.0, said=print, access=who)
        found = source.projects(("torch",))["torch"]
        assert found
        assert source.metadata(found[-1:])
        assert offers.live(NOBLE, Told({}), installer, now=5.0, access=who).wheels
        assert who.login(f"http://{host}:{int(port) + 1}/simple/torch/") == (None if way == "environment" else ("ada", "s3cret"))
    assert who.login("https://pypi.org/simple/torch/") is None
    assert "s3cret" not in f"{who!r} {source.addresses} {installer!r}"


def test_what_is_kept_of_an_index_is_for_its_person_alone(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    with serving(newer_world()) as address:
        offering.asked(NOBLE, Told({}), Installer(index_url=address), environ)
    kept = tmp_path / "bringup" / "offers.json"
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_slow_index_holds_nobody() -> None:
    world = newer_world()
    world.delay = 4.0
    with serving(world) as address:
        began = time.monotonic()
        found = offers.live(NOBLE, Told({"apt-cache policy": POLICY}), Installer(index_url=address), now=5.0, seconds=0.8)
        assert time.monotonic() - began < 2
    assert found.wheels is None
    assert found.here is not None


def test_a_package_list_of_a_repository_is_read_within_bounds() -> None:
    listing = "Package: nvidia-open\nVersion: 580.65.06-1\n\nPackage: nvidia-open\nVersion: 590.48.01-1\n\nPackage: other\nVersion: 1\n"
    assert offers.listed(listing, ("nvidia-open", "cuda-drivers")) == {"nvidia-open": ("590.48.01-1", "580.65.06-1"), "cuda-drivers": ()}
    with pytest.raises(Garbled):
        offers.unpacked(gzip.compress(b"\0" * (65 << 20)))
    with pytest.raises(Garbled):
        offers.unpacked(b"<html>")


def test_an_answer_is_kept_for_its_system_and_index_and_for_a_while(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    world, host = newer_world(), Told({"apt-cache policy": POLICY})
    with serving(world) as address:
        installer = Installer(index_url=address)
        first = offering.asked(NOBLE, host, installer, environ)
        asked = len(world.asked)
        again = offering.asked(NOBLE, host, installer, environ)
        assert (len(world.asked), again.offers) == (asked, first.offers)
        assert offering.cached(NOBLE, host, installer, environ).offers is not None
        assert offering.cached(NOBLE, host, installer, environ, hours=-1).offers is None
        elsewhere = Machine(os=Os(id="ubuntu", version="22.04", arch="x86_64"))
        assert offering.cached(elsewhere, host, installer, environ).offers is None
        assert offering.cached(NOBLE, host, Installer(index_url="http://127.0.0.1:9"), environ).offers is None


@pytest.mark.parametrize("junk", [b"", b"{", b"[" * 100_000, b'{"asked_of": 1}', b"\xff\xfe"])
def test_a_broken_cache_is_no_cache(tmp_path: Path, junk: bytes) -> None:
    (tmp_path / "bringup").mkdir()
    (tmp_path / "bringup" / "offers.json").write_bytes(junk)
    assert offering.cached(NOBLE, Told({}), Installer(), {"XDG_CACHE_HOME": str(tmp_path)}).offers is None


def test_a_recorded_machine_asks_no_network(tmp_path: Path) -> None:
    host = open_host(str(GPU_BOX), None)
    with serving(newer_world()) as address:
        machine = offering.asked(detect(host), host, Installer(index_url=address), {"XDG_CACHE_HOME": str(tmp_path)})
    assert machine.offers == Offers()
    assert list(tmp_path.iterdir()) == []


# --- what the plan says -------------------------------------------------------------------------------


def planned(machine: Machine) -> Plan:
    choices = solve.recommend(machine).choices
    assert choices is not None
    return make_plan(machine, choices, Target(installer=Installer(pythons={"3.12": "/usr/bin/python3.12"})), made=0.0)


def unverified(found: tuple[Finding, ...]) -> set[str]:
    return {str(finding.params["action"]) for finding in found if finding.code == "unverified"}


def test_what_was_confirmed_is_not_marked_and_what_was_not_is() -> None:
    machine = detect(open_host(str(GPU_BOX), None))
    plan = planned(machine)
    simulated = Told({"apt-get": "Inst x (1 y [amd64])\n", "apt-cache show": "Package: x\n", "dpkg": ""})
    wheels = {
        name: {version: ("cp312-cp312-manylinux_2_28_x86_64",)}
        for name, version in plan.profile.frameworks.items()
        if name in ("torch", "torchvision")
    }
    blind = confirm.confirmed(machine, plan, Told({}))
    knowing = confirm.confirmed(msgspec.structs.replace(machine, offers=Offers(wheels=wheels)), plan, simulated)

    assert "environment.install" in unverified(blind)
    assert "driver.install" in unverified(blind)
    assert "environment.install" not in unverified(knowing)
    assert {finding.severity for finding in blind} == {"info"}


def test_fetching_the_lists_has_nothing_to_confirm() -> None:
    machine = detect(open_host(str(GPU_BOX), None))
    plan = planned(machine)
    lists = Packages(id="driver.repository", title="t", lane="packages", manager="apt", refresh=True)
    for host in (open_host(str(GPU_BOX), None), Told({})):
        found = confirm.confirmed(machine, msgspec.structs.replace(plan, actions=(lists, *plan.actions)), host)
        assert unverified(found) == unverified(confirm.confirmed(machine, plan, host))
        assert all(one.subject for one in found)


def test_apt_is_not_taken_at_its_word_before_an_earlier_action_has_set_the_branch() -> None:
    machine = detect(open_host(str(GPU_BOX), None))
    plan = planned(machine)
    needy = installing("apt", "driver.install", "t", ("nvidia-driver=535.*",), needs=(BRANCH,))
    refusing = Told({"apt-get -s": Result(stderr="E: Unable to correct problems, you have held broken packages.\n", status=100)})
    (found,) = confirm.confirmed(machine, msgspec.structs.replace(plan, actions=(needy,)), refusing)
    assert [getattr(one, "key", None) for one in found.because] == ["general.because.branch-unset"]


def test_an_index_without_the_wheel_is_an_error() -> None:
    machine = detect(open_host(str(GPU_BOX), None))
    plan = planned(machine)
    none = msgspec.structs.replace(machine, offers=Offers(wheels={"torch": {}, "torchvision": {}}))
    found = [finding for finding in confirm.confirmed(none, plan, Told({})) if finding.code == "wheel-not-offered"]
    assert [finding.severity for finding in found] == ["error", "error"]
    assert found[0].subject == f"torch {plan.profile.frameworks['torch']}"


def test_a_card_that_the_driver_package_does_not_list_is_said() -> None:
    machine = detect(open_host(str(GPU_BOX), None))
    host = Told({"apt-cache show": "Package: x\nModaliases: nvidia(pci:v000010DEd00001B80sv*sd*bc03sc*i*)\n"})
    found = [finding for finding in confirm.confirmed(machine, planned(machine), host) if finding.code == "gpu-not-in-package"]
    assert {finding.severity for finding in found} == {"warning"}


# --- what the rules and the recommendation make of it -------------------------------------------------


def fresh(offers_seen: Offers) -> Machine:
    machine = detect(open_host(str(GPU_BOX.with_name("rtx5090-u2404-fresh.json")), None))
    return msgspec.structs.replace(machine, offers=offers_seen)


def test_what_is_offered_here_goes_before_what_only_the_tables_know() -> None:
    blind = solve.recommend(fresh(Offers())).choices
    assert blind is not None
    branch = blind.driver.branch
    assert (blind.driver.source, blind.driver.flavor) == ("distro", "open")
    variants = [
        f"nvidia-driver-{line}{kind}" for line in ("535", "570", "580", "590", "595") for kind in ("", "-open", "-server", "-server-open")
    ]
    lists: dict[str, tuple[str, ...]] = dict.fromkeys(variants, ()) | {"nvidia-open": (f"{branch}.1-1",)}

    elsewhere = solve.recommend(fresh(Offers(here=lists))).choices
    assert elsewhere is not None
    assert (elsewhere.driver.source, elsewhere.driver.branch) == ("nvidia-repo", branch)


def test_a_driver_that_the_lists_do_not_have_is_said_and_one_that_nobody_asked_for_is_not() -> None:
    choices = solve.recommend(fresh(Offers())).choices
    assert choices is not None
    (package,) = (f"nvidia-driver-{choices.driver.branch}-open",)

    def codes(seen: Offers) -> list[str]:
        return [f"{one.code} {one.severity}" for one in solve.judge_driver(fresh(seen), choices) if one.code == "driver-not-offered"]

    assert codes(Offers()) == codes(Offers(here={})) == codes(Offers(here={package: ("580.1-1",)})) == []
    assert codes(Offers(here={package: ()})) == ["driver-not-offered warning"]
