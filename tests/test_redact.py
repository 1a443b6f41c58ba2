"""What names a person, a machine or a credential stays in no recording, and what does not stays as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steps.detect.machine import detect
from steps.host.captured import CapturedHost
from steps.host.opening import open_host
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
