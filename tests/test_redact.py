"""What names a person, a machine or a credential stays in no recording, and what does not stays as it is."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from steps.detect.machine import detect
from steps.host.captured import CapturedHost
from steps.host.credentials import without_credentials
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


KEPT = (
    "tokenizers==0.21.0",
    "tokenizers=0.21.0=py312",
    "docker run -u 1000:1000 ubuntu:24.04@sha256:0a1b",
    'BusID "PCI:1@0:0:0"',
    "crashkernel=0M-2G:128M,2G-6G:256M@16M",
    "signature: 4C:1D:22",
    "date -u +%H:%M",
    "[sudo] password for",
    "Failed password for invalid",
    "hg+ssh://host/x@v1",
    "run with --token --verbose",
    "PWD=/root",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
)
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\nQyNTUxOQ==\n-----END OPENSSH PRIVATE KEY-----\n"
OLD_KEY = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nMIIEpAIBAA\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("https://:s3cretpw@host/simple", "https://host/simple"),
        ("http://user:p@ss@host/x", "http://host/x"),
        ("http_proxy=bob:hunter2@proxy:3128", "http_proxy=REDACTED@proxy:3128"),
        ("proxy = bob:hunter2@10.1.2.3:3128", "proxy = REDACTED@"),
        ("https://a.blob.example/x.whl?sv=2024&sig=SECRET%3D&se=1", "https://a.blob.example/x.whl?sv=2024&sig=REDACTED&se=1"),
        ("https://s3.example/x?X-Amz-Expires=9&X-Amz-Signature=SECRET", "X-Amz-Signature=REDACTED"),
        ("X-Amz-Signature=SECRET", "X-Amz-Signature=REDACTED"),
        ("tool --password hunter2 --token abc run", "tool --password REDACTED --token REDACTED run"),
        ("tool --password 'hunter2 abc' run", "tool --password 'REDACTED' run"),
        ('["tool", "--token", "abc"]', '["tool", "--token", "REDACTED"]'),
        ("curl -u bob:hunter2 https://x.example", "curl -u REDACTED https://x.example"),
        ("curl --user :hunter2", "curl --user REDACTED"),
        ("machine x.example login bob password hunter2", "machine x.example login bob password REDACTED"),
        ("machine x.example\n  login bob\n  password hunter2\n", "password REDACTED\n"),
        ("machine x.example password hunter2 login bob", "password REDACTED login bob"),
        ("id AKIAIOSFODNN7EXAMPLE.", "id REDACTED."),
        (KEY, "-----BEGIN OPENSSH PRIVATE KEY-----REDACTED-----END OPENSSH PRIVATE KEY-----"),
        (OLD_KEY, "-----BEGIN RSA PRIVATE KEY-----REDACTED-----END RSA PRIVATE KEY-----"),
        (KEY[:60], "-----BEGIN OPENSSH PRIVATE KEY-----REDACTED"),
        ("PASSWORD='my secret pw'", "PASSWORD='REDACTED'"),
        ('{"password": "my \\"secret pw", "n": 1}', '{"password": "REDACTED", "n": 1}'),
        ("DB_PASSWORD=a,secret", "DB_PASSWORD=REDACTED"),
        ("authorization: hunter2", "authorization: REDACTED"),
        ("NGC nvapi-0123456789abcdefSECRET", "NGC REDACTED"),
        ("x eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0aaaa.SECRET y", "x REDACTED y"),
    ],
)
def test_credentials_go_whole_and_what_is_around_them_stays(clean: Redaction, text: str, left: str) -> None:
    found = clean.text(text)
    assert left in found
    assert [word for word in SECRETS if word in found] == []


SECRETS = ("s3cretpw", "hunter2", "SECRET", "abc", "ss@", "AKIA", "b3BlbnN", "QyNT", "MIIEp", "my ", "secret", " pw")


@pytest.mark.parametrize(
    "piece",
    [
        *("a:", "a:b@", "a-", "token", "token-", "--token ", "://", "-----BEGIN PRIVATE KEY-----", "eyJ", "eyJ-", "?sig", "password ", "'"),
        *("PASSWORD='", "machine a ", "authorization: ", "-u ", "sk-", " "),
    ],
)
def test_the_time_grows_with_the_text_and_no_faster(piece: str) -> None:
    def taken(size: int) -> float:
        text = piece * (size // len(piece))
        began = time.process_time()
        without_credentials(text)
        return time.process_time() - began

    # A fourfold text may take eight times as long, on a machine that others use too; what grows with the square takes sixteen.
    assert taken(200_000) < 8 * taken(50_000) + 0.2


@pytest.mark.parametrize("text", ["ii |libsecret-1-0:amd64|0.20.5-3", "ii |libpam-passwdqc:amd64|2.0", "sk-learn 1.5", "x-token", *KEPT])
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
