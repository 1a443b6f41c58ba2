"""What names a person, a machine or a credential stays in no recording, and what does not stays as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steps.detect.machine import detect
from steps.host.captured import CapturedHost
from steps.host.opening import open_host
from steps.host.recording import RecordingHost
from steps.host.redact import Redaction

MACHINES = Path(__file__).parent / "machines"


@pytest.fixture
def clean(tmp_path: Path) -> Redaction:
    """Return the redaction of a machine whose people come from a directory service, one of them called git."""
    capture = tmp_path / "machine.json"
    files = {"/etc/passwd": "root:x:0:0::/root:/bin/bash\ngit:x:1000:1000::/home/git:/bin/sh\n"}
    capture.write_text(json.dumps({"schema": "bringup/capture", "version": 1, "about": {"name": "gpu7"}, "files": files, "commands": {}}))
    return Redaction(open_host(str(capture), None), ("/home/jdoe/.venv/bin/python\n",))


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("/home/jdoe/.venv/lib", "jdoe"),
        ("run by jdoe on gpu7", "jdoe"),
        ("HF_TOKEN=hf_aaaaaaaaaaaaaaaaaaaaaaaaaaaa", "hf_aaaa"),
        ('{"token": "s3cret-value"}', "s3cret-value"),
        ("password: s3cret-value", "s3cret-value"),
        ("Authorization: Bearer abc.def.ghi", "abc.def.ghi"),
        ("cloning with ghp_0123456789abcdef0123456789", "ghp_0123"),
        ("2: enx3cecef123456: <UP>", "3cecef123456"),
    ],
)
def test_it_is_taken_out(clean: Redaction, text: str, gone: str) -> None:
    assert gone not in clean.text(text)


@pytest.mark.parametrize("text", ["ii |libsecret-1-0:amd64|0.20.5-3", "ii |libpam-passwdqc:amd64|2.0", "sk-learn 1.5", "x-token"])
def test_what_only_looks_like_it_stays(clean: Redaction, text: str) -> None:
    assert clean.text(text) == text


def test_an_interface_has_one_name_in_paths_and_outputs(clean: Redaction) -> None:
    path = clean.path("/sys/class/net/enx3cecef123456/speed")
    assert path.split("/")[4] in clean.text("2: enx3cecef123456: <UP> link/ether 3c:ec:ef:12:34:56")
    assert "3cecef" not in path


def test_somebody_called_like_a_program_does_not_rename_it(clean: Redaction) -> None:
    assert clean.path("/usr/bin/git") == "/usr/bin/git"
    assert "git" not in clean.path("/home/git/envs")


@pytest.mark.parametrize("listed", ["5", "true", "null", '"x"', "[1]"])
def test_addresses_of_the_wrong_shape_are_not_known(tmp_path: Path, listed: str) -> None:
    capture = json.loads((MACHINES / "nogpu-dell-r6515.json").read_text())
    capture["commands"]["ip -j addr"] = {"stdout": f'[{{"ifname": "eno1", "addr_info": {listed}}}]', "stderr": "", "status": 0}
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(capture))
    host = open_host(str(changed), None)
    assert isinstance(host, CapturedHost)
    assert all(not network.addresses for network in detect(host).networks if network.name == "eno1")


# -- odd places -------------------------------------------------------------------------------------------------------

MOUNTS = """\
/dev/nvme0n1p2 / ext4 rw,relatime 0 0
tmpfs /dev/shm tmpfs rw,nosuid,nodev,size=64g 0 0
files.corp.example:/export/people /data nfs4 rw,addr=10.20.30.40,clientaddr=10.20.30.7 0 0
/dev/sdb1 /media/jdoe/stick vfat rw 0 0
"""
CERTIFICATE = """\
[key 1]
SHA1 Fingerprint: 76:a0:92:06:58:00:bf:37:69:01:c3:72:cd:55:a9:0e:1f:de:d2:e0
Certificate:
    Data:
        Serial Number:
            b9:41:24:a0:18:2c:92:67
        Issuer: CN=gpu7 Secure Boot Module Signature key
        Subject: CN=gpu7 Secure Boot Module Signature key
            Modulus:
                00:d3:11:22:33:44
"""
COMMANDS = {
    "nft list ruleset": "table inet filter {\n ip saddr 10.20.30.41 accept\n ip6 saddr 2001:0db8:aa::17 accept\n}\n",
    "dmesg": "[    2.1] usb 1-4: SerialNumber: S4EVNF0M123456\n[    2.2] nvidia: module loaded\n",
    "dmidecode -t memory": "Memory Device\n\tSize: 32 GB\n\tSerial Number: 9A8B7C6D\n\tAsset Tag: RACK-17-U04\n",
    "nvidia-smi -q -x": "<nvidia_smi_log>\n<serial>1322021012345</serial>\n<uuid>GPU-4D6F0F6C-0A7E-11EE-BE56-0242AC120002</uuid>\n",
    "ibstat": "CA 'mlx5_0'\n\tNode GUID: 0x98039b0300a1b2c3\n\tPort GUID: 0x98039b0300a1b2c4\n",
    "mokutil --list-enrolled": CERTIFICATE,
    "printenv LD_LIBRARY_PATH": "/nfs/home/rroe/lib:/usr/local/cuda/lib64\n",
}
FILES = {
    "/proc/self/mounts": MOUNTS,
    "/proc/cmdline": "root=UUID=0AF1B2C3-1111-4222-8333-444455556666 ip=10.20.30.42::10.20.30.1 "
    "systemd.machine_id=0123456789abcdef0123456789abcdef\n",
    "/etc/nccl.conf": "NCCL_COMM_ID=10.20.30.43:4444\n",
    "/sys/class/dmi/id/product_serial": "7XYZ123\n",
    "/etc/passwd": "rroe:x:20001:20001::/nfs/home/rroe:/bin/sh\n",
}
GONE = (
    *("10.20.30", "files.corp.example", "/media/jdoe", "2001:0db8:aa::17", "S4EVNF0M123456", "9A8B7C6D", "RACK-17-U04", "1322021012345"),
    *(
        "4D6F0F6C",
        "98039b0300a1b2c3",
        "98039b0300a1b2c4",
        "76:a0:92",
        "b9:41:24",
        "00:d3:11",
        "rroe",
        "0AF1B2C3",
        "0123456789abcdef0123",
        "7XYZ123",
    ),
    "gpu7",
)


def test_nothing_that_names_a_place_or_a_person_is_left_in_odd_places(tmp_path: Path) -> None:
    document = {
        "schema": "bringup/capture",
        "version": 1,
        "about": {"name": "gpu7"},
        "files": FILES,
        "commands": {argv: {"stdout": text, "stderr": "", "status": 0} for argv, text in COMMANDS.items()},
    }
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(document))
    host = RecordingHost(open_host(str(path), None))
    for argv in COMMANDS:
        host.run(tuple(argv.split()))
    for file in FILES.keys() - {"/etc/passwd"}:
        host.read(file)
    text = host.capture({}).decode()
    assert [gone for gone in GONE if gone.lower() in text.lower()] == []
    kept = json.loads(text)
    assert kept["files"]["/proc/self/mounts"].splitlines() == MOUNTS.splitlines()[:2]
    assert "Secure Boot Module Signature key" in kept["commands"]["mokutil --list-enrolled"]["stdout"]
    assert "nvidia: module loaded" in kept["commands"]["dmesg"]["stdout"]
