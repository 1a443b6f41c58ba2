"""What the ranks meet: shared memory, limits, firewalls and NCCL's files, as hosts show them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steps import profiles
from steps.compat import nccl, nccl_conf, transport
from steps.detect.probes import Probes
from steps.detect.ranks import firewall, ranks
from steps.host.captured import Capture, CapturedHost, Encoded, Recorded
from steps.host.rooted import RootedHost
from steps.model.hardware import Accelerator, InfinibandPort, Network
from steps.model.machine import Machine
from steps.model.profile import NcclAnswers, Profile
from steps.model.software import Driver, Firewall, NcclFile, Os, Ranks, Told

GIB = 1 << 30


def host(files: Mapping[str, str] | None = None, commands: Mapping[str, str] | None = None) -> Probes:
    recorded = {line: Recorded(stdout=text, status=0) for line, text in (commands or {}).items()}
    kept: dict[str, str | Encoded] = dict(files or {})
    return Probes(CapturedHost(Capture(schema="bringup/capture", version=1, files=kept, commands=recorded)))


MOUNT = "sysfs /sys sysfs rw 0 0\ntmpfs /dev/shm tmpfs {} 0 0\n"


@pytest.mark.parametrize(
    ("files", "commands", "shm"),
    [
        ({"/proc/self/mounts": MOUNT.format("rw,nosuid,nodev,size=65536k,inode64")}, {}, 64 << 20),
        ({"/proc/self/mounts": MOUNT.format("rw,size=2g")}, {}, 2 * GIB),
        ({"/proc/self/mounts": MOUNT.format("rw,size=25%")}, {}, 32 * GIB),
        ({"/proc/mounts": MOUNT.format("rw,nosuid,nodev,inode64")}, {}, 64 * GIB),
        ({"/proc/self/mounts": MOUNT.format("rw,size=64m") + MOUNT.format("rw,size=1g")}, {}, GIB),
        ({"/proc/self/mounts": "ext4 /dev/shm ext4 rw 0 0\n"}, {}, None),
        ({}, {"df -h": "Filesystem Size Used Avail Use% Mounted on\nshm 64M 0 64M 0% /dev/shm\n"}, 64 << 20),
        ({}, {}, None),
    ],
)
def test_shared_memory_is_what_its_mount_says(files: dict[str, str], commands: dict[str, str], shm: int | None) -> None:
    assert ranks(host(files, commands), 128 * GIB).shm_bytes == shm


@pytest.mark.parametrize(
    ("files", "commands", "memlock"),
    [
        (
            {"/proc/self/limits": "Max locked memory         8388608              8388608              bytes\n"},
            {},
            8 << 20,
        ),
        ({"/proc/self/limits": "Max locked memory         unlimited            unlimited            bytes     \n"}, {}, "unlimited"),
        ({}, {"ulimit -l": "64\n"}, 64 << 10),
        ({}, {"ulimit -l": "unlimited\n"}, "unlimited"),
        ({}, {"ulimit -l": "bash: ulimit: oops\n"}, None),
        ({}, {}, None),
    ],
)
def test_locked_memory_is_counted_in_bytes(files: dict[str, str], commands: dict[str, str], memlock: object) -> None:
    assert ranks(host(files, commands), None).memlock == memlock


CASES = Path(__file__).parent / "cases" / "firewall"
UFW = (CASES / "ufw.txt").read_text()
ZONES = (CASES / "firewalld.txt").read_text()
NFT = (CASES / "nftables.txt").read_text()


@pytest.mark.parametrize(
    ("files", "commands", "found"),
    [
        ({}, {"ufw status verbose": UFW}, Firewall(tool="ufw", active=True, drops=True, open=("10.0.0.0/24", "eno2"))),
        (
            {
                "/etc/ufw/ufw.conf": "ENABLED=yes\nLOGLEVEL=low\n",
                "/etc/default/ufw": 'IPV6=yes\nDEFAULT_INPUT_POLICY="DROP"\n',
                "/etc/ufw/user.rules": "### tuple ### allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in\n"
                "### tuple ### allow any any 0.0.0.0/0 any 10.1.0.0/16 in\n",
            },
            {},
            Firewall(tool="ufw", active=True, drops=True, open=("10.1.0.0/16",)),
        ),
        ({"/etc/ufw/ufw.conf": "ENABLED=no\n"}, {}, None),
        ({}, {"ufw status verbose": "Status: inactive\n"}, None),
        ({}, {"firewall-cmd --list-all-zones": ZONES}, Firewall(tool="firewalld", active=True, drops=True, open=("ib0", "10.0.0.0/24"))),
        ({}, {"firewall-cmd --list-all-zones": "FirewallD is not running\n"}, None),
        (
            {},
            {"nft list ruleset": NFT},
            Firewall(tool="nftables", active=True, drops=True, open=("10.0.0.0/24", "ib0"), chain="inet filter input"),
        ),
        (
            # Cut off behind the chain.
            {},
            {"nft list ruleset": NFT[: NFT.index("\tchain forward")]},
            Firewall(tool="nftables", active=True, drops=True, open=("10.0.0.0/24", "ib0"), chain="inet filter input"),
        ),
        (
            {},
            {"nft list ruleset": NFT.replace("chain input", "chain $(reboot)")},
            Firewall(tool="nftables", active=True, drops=True, open=("10.0.0.0/24", "ib0")),
        ),
        ({}, {"nft list ruleset": NFT.replace("policy drop", "policy accept")}, None),
        (
            {},
            {"nft list ruleset": NFT.replace("tcp dport 22 accept", "jump docker")},
            Firewall(tool="nftables", active=True, open=("10.0.0.0/24", "ib0"), chain="inet filter input"),
        ),
        ({}, {"iptables -S INPUT": "-P INPUT ACCEPT\n"}, None),
        (
            {},
            {"iptables -S INPUT": "-P INPUT ACCEPT\n-A INPUT -s 10.0.0.0/24 -j ACCEPT\n-A INPUT -j REJECT\n"},
            Firewall(tool="iptables", active=True, drops=True, open=("10.0.0.0/24",)),
        ),
        (
            {"/etc/ufw/ufw.conf": "ENABLED=no\n"},
            {"nft list ruleset": NFT},
            Firewall(tool="nftables", active=True, drops=True, open=("10.0.0.0/24", "ib0"), chain="inet filter input"),
        ),
        ({}, {}, None),
    ],
)
def test_a_firewall_is_told_by_its_own_tool(files: dict[str, str], commands: dict[str, str], found: Firewall | None) -> None:
    assert firewall(host(files, commands)) == found


def test_the_files_that_nccl_reads_are_found_and_the_module_for_infiniband() -> None:
    files = {
        "/etc/nccl.conf": "NCCL_DEBUG=WARN\n",
        "/home/ann/.nccl.conf": "NCCL_ALGO=Ring\n",
        "/proc/modules": "nvidia_peermem 16384 0 - Live 0x0\n",
    }
    found = ranks(host(files), None)
    assert [one.path for one in found.files] == ["/etc/nccl.conf", "/home/ann/.nccl.conf"]
    assert found.peermem is True
    assert ranks(host({"/proc/modules": "nvidia 1 0 - Live 0x0\n"}), None).peermem is False
    assert ranks(host(), None) == Ranks()


@pytest.mark.parametrize(
    ("files", "commands", "rdma"),
    [
        ({"/sys/class/infiniband/mlx5_0/node_type": "1: CA\n"}, {}, True),
        ({}, {}, None),
    ],
)
def test_rdma_devices_are_known_where_somebody_looked(files: dict[str, str], commands: dict[str, str], rdma: bool | None) -> None:
    assert ranks(host(files, commands), None).rdma is rdma


def test_a_running_system_without_rdma_devices_is_known_to_have_none(tmp_path: Path) -> None:
    class Bare(RootedHost):
        def listdir(self, path: str) -> tuple[str, ...] | None:
            return None

        def exists(self, path: str) -> bool | None:
            return False

    assert ranks(Probes(Bare(str(tmp_path), host().host)), None).rdma is False


def test_a_file_that_cannot_be_read_as_text_is_known_to_be_there(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    conf = tmp_path / "etc/nccl.conf"
    conf.mkdir()
    assert ranks(Probes(RootedHost(str(tmp_path), host().host)), None).kept == {"/etc/nccl.conf": "unreadable"}
    conf.rmdir()
    conf.write_bytes("# 主网口\nNCCL_DEBUG=WARN\n".encode("gbk"))
    assert ranks(Probes(RootedHost(str(tmp_path), host().host)), None).kept == {"/etc/nccl.conf": "encoding"}
    conf.write_text("# 主网口\nNCCL_DEBUG=WARN\n")
    assert ranks(Probes(RootedHost(str(tmp_path), host().host)), None).kept == {}


@pytest.mark.parametrize(("reason", "left_alone"), [("unreadable", "warning"), ("encoding", None)])
def test_nothing_is_written_over_a_file_that_could_not_be_read_as_text(reason: str, left_alone: str | None) -> None:
    found = machine(ranks=Ranks(kept={"/etc/nccl.conf": reason}))  # type: ignore[dict-item]
    asked = Profile(nccl=NcclAnswers(debug="WARN"))
    assert nccl_conf.conf_text(found, asked) is None
    assert nccl_conf.conf_text(found, asked, "/home/ann/.nccl.conf") == "NCCL_DEBUG=WARN\n"
    assert codes(found, debug="WARN")["nccl-file-kept"] == "error"
    assert codes(found).get("nccl-file-kept") == left_alone


# --- what is said of it -----------------------------------------------------------------------------

H100 = Accelerator(
    address="0000:0f:00.0", vendor="nvidia", name="NVIDIA H100 80GB HBM3", chip="GH100", architecture="hopper", pci_id="10de:2330"
)
GEFORCE = Accelerator(
    address="0000:01:00.0", vendor="nvidia", name="NVIDIA GeForce RTX 4090", chip="AD102", architecture="ada", pci_id="10de:2684"
)
ENO1 = Network(name="eno1", kind="ethernet", driver="igb", up=True, speed_mbps=1000, addresses=("10.0.0.5/24",))
PORT = InfinibandPort(device="mlx5_0", port=1, link_layer="InfiniBand", state="active")


def machine(card: Accelerator = H100, *, count: int = 2, **facts: Any) -> Machine:
    return Machine(**{"accelerators": (card,) * count, "networks": (ENO1,), "told": Told(nvlink=True), **facts})


def codes(found: Machine, **answers: Any) -> dict[str, str]:
    return {one.code: one.severity for one in nccl.judge_nccl(found, Profile(nccl=NcclAnswers(**answers)))}


DROPS = Firewall(tool="ufw", active=True, drops=True)


@pytest.mark.parametrize(
    ("code", "severity", "has", "nearly"),
    [
        ("nccl-shm-small", "warning", machine(ranks=Ranks(shm_bytes=64 << 20)), machine(ranks=Ranks(shm_bytes=GIB))),
        ("nccl-shm-small", "warning", machine(ranks=Ranks(shm_bytes=64 << 20)), machine(count=1, ranks=Ranks(shm_bytes=64 << 20))),
        ("nccl-memlock-low", "warning", machine(infiniband=(PORT,), ranks=Ranks(memlock=8 << 20)), machine(ranks=Ranks(memlock=8 << 20))),
        (
            "nccl-memlock-low",
            "warning",
            machine(infiniband=(PORT,), ranks=Ranks(memlock=64 << 10)),
            machine(infiniband=(PORT,), ranks=Ranks(memlock="unlimited")),
        ),
        (
            "nccl-firewall",
            "info",
            machine(ranks=Ranks(firewall=DROPS)),
            machine(ranks=Ranks(firewall=Firewall(tool="ufw", active=True, drops=False))),
        ),
        (
            "nccl-firewall",
            "info",
            machine(ranks=Ranks(firewall=Firewall(tool="ufw", active=True, drops=True, open=("10.0.0.0/25",)))),
            machine(ranks=Ranks(firewall=Firewall(tool="ufw", active=True, drops=True, open=("10.0.0.0/16",)))),
        ),
        (
            "nccl-firewall",
            "info",
            machine(ranks=Ranks(firewall=DROPS)),
            machine(ranks=Ranks(firewall=Firewall(tool="firewalld", active=True, drops=True, open=("eno1",)))),
        ),
        ("nccl-gdr-unavailable", "info", machine(GEFORCE, infiniband=(PORT,)), machine(infiniband=(PORT,))),
        (
            "nccl-gdr-unavailable",
            "info",
            machine(infiniband=(PORT,), driver=Driver(state="working", flavor="proprietary"), ranks=Ranks(peermem=False)),
            machine(infiniband=(PORT,), driver=Driver(state="working", flavor="proprietary"), ranks=Ranks(peermem=True)),
        ),
        (
            "nccl-gdr-unavailable",
            "info",
            machine(
                infiniband=(PORT,),
                driver=Driver(state="working", flavor="open"),
                os=Os(kernel="5.4.0-1-generic"),
                ranks=Ranks(peermem=False),
            ),
            machine(
                infiniband=(PORT,),
                driver=Driver(state="working", flavor="open"),
                os=Os(kernel="6.8.0-1-generic"),
                ranks=Ranks(peermem=False),
            ),
        ),
    ],
)
def test_a_finding_is_said_of_the_machine_that_has_it(code: str, severity: str, has: Machine, nearly: Machine) -> None:
    assert codes(has)[code] == severity
    assert code not in codes(nearly)


def test_a_firewall_matters_more_once_an_interface_was_chosen_and_says_how_to_open_it() -> None:
    walled = machine(ranks=Ranks(firewall=DROPS))
    assert codes(walled, interface="eno1")["nccl-firewall"] == "warning"
    found = transport.firewall(walled, Profile())
    assert found is not None
    assert found.params["command"] == "ufw allow from 10.0.0.0/24"
    lasting = transport.firewall(machine(ranks=Ranks(firewall=Firewall(tool="firewalld", active=True, drops=True))), Profile())
    assert lasting is not None
    # First what holds at once, then what keeps it: --permanent alone opens nothing before a reload.
    opened, _, kept = str(lasting.params["command"]).partition(" && ")
    assert (opened, kept) == ("firewall-cmd --zone=trusted --add-source=10.0.0.0/24", "firewall-cmd --runtime-to-permanent")


def test_nftables_is_opened_in_the_chain_that_decides_here() -> None:
    # As iptables of a newer distribution writes it, for both families.
    listed = "".join(NFT.replace("inet filter", f"{family} filter").replace("chain input", "chain INPUT") for family in ("ip6", "ip"))
    wall = firewall(host(commands={"nft list ruleset": listed}))
    assert wall is not None
    assert wall.chain == "ip filter INPUT"
    found = transport.firewall(machine(ranks=Ranks(firewall=msgspec.structs.replace(wall, open=()))), Profile())
    assert found is not None
    assert found.params["command"] == "nft insert rule ip filter INPUT ip saddr 10.0.0.0/24 accept"


CONF = "# ours\nNCCL_SOCKET_IFNAME=docker0\nNCCL_IB_DISABLE=1 # no IB\nNCCL_ALGO = Ring\nNCCL_NONSENSE=1\nthis sets nothing\n"
FILED = machine(
    networks=(ENO1, Network(name="docker0", kind="virtual", up=True)), ranks=Ranks(files=(NcclFile(path="/etc/nccl.conf", text=CONF),))
)


def test_an_existing_file_is_judged_line_by_line_and_each_fix_is_kept_to_its_line() -> None:
    found = {one.code: one for one in nccl.judge_nccl(FILED, Profile())}
    assert {"nccl-interface-virtual", "nccl-inline-comment", "nccl-line-misread", "nccl-line-ignored", "nccl-unknown-variable"} <= set(
        found
    )
    assert found["nccl-inline-comment"].fix == {"nccl.extra": {"NCCL_IB_DISABLE": "1"}}
    assert found["nccl-line-misread"].fix == {"nccl.extra": {"NCCL_ALGO": "Ring"}}
    assert found["nccl-interface-virtual"].fix == {"nccl.interface": "eno1"}
    fixed = Profile(nccl=NcclAnswers(interface="eno1", extra={"NCCL_IB_DISABLE": "1", "NCCL_ALGO": "Ring"}))
    assert {one.code for one in nccl.judge_nccl(FILED, fixed)} & set(found) == {
        "nccl-line-ignored",
        "nccl-unknown-variable",
        "nccl-no-infiniband",
    }
    assert nccl_conf.conf_text(FILED, fixed) == (
        "# ours\nNCCL_SOCKET_IFNAME=eno1\nNCCL_IB_DISABLE=1\nNCCL_ALGO=Ring\nNCCL_NONSENSE=1\nthis sets nothing\n"
    )


def test_an_answer_that_leaves_it_to_nccl_takes_the_line_out() -> None:
    text = nccl_conf.conf_text(FILED, Profile(nccl=NcclAnswers(interface="auto")))
    assert text == CONF.replace("NCCL_SOCKET_IFNAME=docker0\n", "")
    assert nccl_conf.conf_text(FILED, Profile()) is None


def test_a_persons_own_file_that_overrules_the_systems_is_named() -> None:
    own = machine(ranks=Ranks(files=(NcclFile(path="/home/ann/.nccl.conf", text="NCCL_DEBUG=INFO\n"),)))
    assert codes(own, debug="WARN")["nccl-user-file-first"] == "warning"
    assert "nccl-user-file-first" not in codes(own)
    assert "nccl-user-file-first" not in codes(own, p2p="off")


@pytest.mark.parametrize(
    ("text", "code", "fix"),
    [
        ("UCX_TLS=rc # only rc\n", "nccl-inline-comment", None),
        ("UCX_TLS =rc\n", "nccl-line-misread", None),
        ("NCCL DEBUG=INFO\n", "nccl-line-misread", None),
        ("\ufeffNCCL_ALGO=Ring\n", "nccl-line-misread", {"NCCL_ALGO": "Ring"}),
        ("export\tNCCL_ALGO=Ring\n", "nccl-line-misread", {"NCCL_ALGO": "Ring"}),
        ("set NCCL_ALGO=Ring\n", "nccl-line-misread", {"NCCL_ALGO": "Ring"}),
    ],
)
def test_a_line_is_mended_only_into_what_a_profile_takes(text: str, code: str, fix: dict[str, str] | None) -> None:
    filed = machine(ranks=Ranks(files=(NcclFile(path=nccl_conf.CONF, text=text),)))
    found = {one.code: one for one in nccl.judge_nccl(filed, Profile())}
    assert found[code].fix == (None if fix is None else {"nccl.extra": fix})
    if fix is not None:
        answers = Profile(nccl=NcclAnswers(extra=fix))
        assert profiles.parse(profiles.dump(answers), "p.toml").nccl.extra == fix
        assert nccl_conf.conf_text(filed, answers) == "NCCL_ALGO=Ring\n"
