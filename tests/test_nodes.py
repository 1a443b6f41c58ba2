"""Several machines as one: two network namespaces stand for them, joined by a cable, with a real firewall in between where it is wanted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from steps import nodes
from steps.host.base import Result
from steps.host.local import LocalHost
from steps.model.hardware import Network
from steps.model.verdict import Rung
from steps.nodes import Meeting, Node
from steps.text import say
from tests import namespaces
from tests.namespaces import as_root, ip

FAR = Path(__file__).parent / "bin" / "ssh-to-namespaces"


@pytest.fixture
def cabled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, str]]:
    """Return two machines that "ssh" reaches."""
    (tmp_path / "ssh").symlink_to(FAR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with namespaces.cabled() as names:
        yield names


def looked(names: tuple[str, ...], interface: str | None = None) -> tuple[dict[str, Rung], Meeting | None]:
    rungs, meeting = nodes.look(LocalHost(), names, interface, None, time.time())
    return {rung.id: rung for rung in rungs}, meeting


@as_root
def test_machines_that_reach_each_other_meet_on_their_card_and_not_on_dockers_bridge(cabled: tuple[str, str]) -> None:
    rungs, meeting = looked(cabled)
    assert {name: rung.state for name, rung in rungs.items()} == {
        "nodes": "passed",
        "node-versions": "passed",
        "node-clock": "passed",
        "node-subnet": "passed",
        "node-ports": "passed",
    }, {name: say("en", rung.because) for name, rung in rungs.items()}
    assert meeting == Meeting(addresses=("10.77.0.1", "10.77.0.2"), interfaces=("eno1", "eno1"), subnet="10.77.0.0/24")


@as_root
@pytest.mark.skipif(shutil.which("nft") is None, reason="needs nft")
@pytest.mark.parametrize("verdict", ["drop", "reject with icmpx type admin-prohibited"])
def test_a_firewall_between_them_is_named(cabled: tuple[str, str], verdict: str) -> None:
    rules = f"table inet filter {{ chain input {{ type filter hook input priority 0; tcp dport 22 accept; ip protocol tcp {verdict}; }}; }}"
    subprocess.run(("ip", "netns", "exec", cabled[1], "nft", "-f", "-"), input=rules, text=True, check=True)
    rungs, _ = looked(cabled)
    assert rungs["node-subnet"].state == "passed"
    assert rungs["node-ports"].state == "failed"
    assert "a firewall on" in say("en", rungs["node-ports"].because)


@as_root
def test_a_machine_that_does_not_answer_ends_the_look_with_sshs_own_words(cabled: tuple[str, str]) -> None:
    rungs, meeting = looked((cabled[0], "bringup-nowhere"))
    assert meeting is None
    assert say("en", rungs["nodes"].because) == (
        "bringup-nowhere cannot be asked over ssh: ssh: Could not resolve hostname bringup-nowhere: Name or service not known"
    )
    assert rungs["node-ports"].state == "skipped"


@as_root
def test_an_interface_that_one_machine_lacks_is_named(cabled: tuple[str, str]) -> None:
    ip("-n", cabled[0], "link", "add", "ib0", "type", "veth", "peer", "name", "ib1")
    ip("-n", cabled[0], "link", "set", "ib0", "up")
    ip("-n", cabled[0], "link", "set", "ib1", "up")
    ip("-n", cabled[0], "addr", "add", "192.168.9.1/24", "dev", "ib0")
    rungs, meeting = looked(cabled, "ib0")
    assert meeting is not None
    assert rungs["node-subnet"].state == "failed"
    assert say("en", rungs["node-subnet"].because).startswith("ib0 does not lead to all of them")


# --- judged from what machines say --------------------------------------------------------------------


def node(name: str, *addresses: str, clock: float = 0.0, **versions: str) -> Node:
    networks = (
        Network(name="lo", kind="loopback", up=True, addresses=("127.0.0.1/8",)),
        Network(name="eth0", up=True, addresses=addresses),
    )
    return Node(name=name, networks=networks, clock=clock, driver="580.95.05", versions=versions)


def test_what_differs_is_named_with_its_machines() -> None:
    rung = nodes.agree((node("a", torch="2.7.1"), node("b", torch="2.8.0")))
    assert (rung.state, say("en", rung.because)) == ("failed", "torch differs: a: 2.7.1, b: 2.8.0.")
    assert nodes.agree((node("a", torch="2.7.1"), node("b"))).state == "failed"
    assert nodes.agree((node("a", torch="2.7.1"), node("b", torch="2.7.1"))).state == "passed"


@pytest.mark.parametrize(("ahead", "state"), [(1.5, "passed"), (61.0, "failed"), (-61.0, "failed")])
def test_clocks_may_differ_by_a_few_seconds(ahead: float, state: str) -> None:
    assert nodes.clocks((node("a"), node("b", clock=ahead))).state == state


def test_machines_without_a_common_network_do_not_meet() -> None:
    apart = (node("a", "10.0.0.1/24"), node("b", "10.0.1.1/24"))
    assert nodes.meet(apart, None) is None
    assert "a: 10.0.0.1/24; b: 10.0.1.1/24" in say("en", nodes.subnets(apart, None, None).because)


def test_machines_with_ipv6_alone_meet_there_and_ipv4_goes_first_where_both_are() -> None:
    six = (node("a", "2001:db8:1::a/64", "fe80::1/64"), node("b", "2001:db8:1::b/64", "fe80::1/64"))
    meeting = nodes.meet(six, None)
    assert meeting is not None
    assert (meeting.addresses, meeting.subnet) == (("2001:db8:1::a", "2001:db8:1::b"), "2001:db8:1::/64")
    assert "[2001:db8:1::a]:29500" in nodes.launch_line(meeting, 1, 4, "train.py")
    both = (node("a", "2001:db8:1::a/64", "10.0.0.1/24"), node("b", "2001:db8:1::b/64", "10.0.0.2/24"))
    chosen = nodes.meet(both, None)
    assert chosen is not None
    assert chosen.addresses == ("10.0.0.1", "10.0.0.2")


def test_an_address_that_each_machine_has_for_itself_is_no_network_between_them() -> None:
    alike = (node("a", "10.88.0.1/16", "10.0.0.1/24"), node("b", "10.88.0.1/16", "10.0.0.2/24"))
    meeting = nodes.meet(alike, None)
    assert meeting is not None
    assert meeting.subnet == "10.0.0.0/24"
    assert nodes.meet((node("a", "10.88.0.1/16"), node("b", "10.88.0.1/16")), None) is None


def test_the_line_that_starts_a_job_names_the_interface_and_where_the_ranks_meet() -> None:
    meeting = Meeting(addresses=("10.0.0.1", "10.0.0.2"), interfaces=("eth0", "eno1"), subnet="10.0.0.0/24")
    assert nodes.launch_line(meeting, 1, 4, "train.py") == (
        "env", "NCCL_SOCKET_IFNAME=eno1", "GLOO_SOCKET_IFNAME=eno1",
        "torchrun", "--nnodes", "2", "--nproc-per-node", "4", "--node-rank", "1",
        "--rdzv-backend", "c10d", "--rdzv-endpoint", "10.0.0.1:29500", "train.py",
    )  # fmt: skip


ODD = json.dumps({"interfaces": [{"ifname": "x", "addr_info": [{"local": 1}]}]})


class Liar:
    """A host whose ssh brings back what another machine made up."""

    def __init__(self, said: str) -> None:
        self.said = said

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0) -> Result:
        return Result(stdout=self.said, status=0)


@pytest.mark.parametrize(
    "said",
    [
        "",
        "[]",
        '{"interfaces": 7, "clock": "now", "versions": []}',
        ODD,
    ],
)
def test_what_another_machine_makes_up_ends_in_a_rung(said: str) -> None:
    rungs, meeting = nodes.look(Liar(said), ("a", "b"), None, None, 0.0)  # type: ignore[arg-type]
    assert meeting is None
    assert any(rung.state == "failed" for rung in rungs)
