"""Captures: reading what was recorded, refusing what is none, and recording a machine without naming it."""

from __future__ import annotations

import base64
import json
import os
import random
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steps import resources
from steps.compat.firmware import judge_firmware
from steps.compat.hardware import judge_hardware
from steps.detect.capture import record
from steps.detect.machine import detect
from steps.detect.summary import headline
from steps.errors import InputError
from steps.host.base import Result
from steps.host.captured import Capture, CapturedHost, load_capture, parse_capture
from steps.host.local import LocalHost
from steps.host.opening import open_host
from steps.host.rooted import RootedHost
from steps.model.machine import Machine
from steps.text import say_finding
from tests import scoring


def captured(**parts: Any) -> CapturedHost:
    return CapturedHost(parse_capture(json.dumps({"schema": "bringup/capture", "version": 1, **parts}).encode()))


# -- what is recorded, what is absent, what is unknown ----------------------------------------------------------------


def test_below_sys_of_a_tree_what_was_not_recorded_does_not_exist() -> None:
    tree = captured(files={"/sys/class/dmi/id/sys_vendor": "Dell\n"}, dirs=["/sys/kernel/iommu_groups"])
    assert tree.exists("/sys/firmware/efi") is False
    assert tree.exists("/sys/class/dmi") is True
    assert tree.exists("/etc/os-release") is None
    assert tree.listdir("/sys/kernel/iommu_groups") == ()
    assert tree.listdir("/sys/firmware") is None


def test_without_dirs_nothing_is_known_to_be_absent() -> None:
    assert captured(files={"/sys/a": "1"}).exists("/sys/firmware/efi") is None


def test_files_are_reached_through_links() -> None:
    host = captured(
        files={"/sys/devices/pci0000:00/0000:01:00.0/vendor": "0x10de\n"},
        links={
            "/sys/bus/pci/devices/0000:01:00.0": "../../../devices/pci0000:00/0000:01:00.0",
            "/sys/devices/pci0000:00/0000:01:00.0/driver": "../../../bus/pci/drivers/nvidia",
        },
        dirs=[],
    )
    assert host.read("/sys/bus/pci/devices/0000:01:00.0/vendor") == "0x10de\n"
    assert host.readlink("/sys/bus/pci/devices/0000:01:00.0/driver") == "../../../bus/pci/drivers/nvidia"
    assert host.glob("/sys/bus/pci/devices/*/vendor") == ("/sys/bus/pci/devices/0000:01:00.0/vendor",)
    assert host.glob("/sys/bus/pci/devices/*/driver") == ("/sys/bus/pci/devices/0000:01:00.0/driver",)


def test_bytes_come_back_as_bytes() -> None:
    data = b"\x06\x00\x00\x00\x01"
    host = captured(files={"/sys/firmware/efi/x": {"base64": base64.b64encode(data).decode()}, "/sys/y": "\x06\x00\x00\x00\x01"})
    assert host.read_bytes("/sys/firmware/efi/x") == data
    assert host.read_bytes("/sys/y") == data
    assert captured(files={"/a": {"base64": "!!"}}).read_bytes("/a") is None


def test_commands_are_found_by_their_argv_and_globs_as_typed() -> None:
    host = captured(
        commands={
            "lspci -d '10de:*' -v": {"stdout": "one"},
            "ls -l /dev/nvidia*": {"stdout": "two", "status": 2},
            "broken 'quote": {"stdout": "three"},
        }
    )
    assert host.run(("lspci", "-d", "10de:*", "-v")) == Result(stdout="one", status=None)
    assert host.run(("ls", "-l", "/dev/nvidia*")).status == 2
    assert host.run(("never", "recorded")) == Result(status=None)


# -- what is no capture -----------------------------------------------------------------------------------------------

GOOD: Mapping[str, Any] = {"schema": "bringup/capture", "version": 1}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"schema":"bringup/capture","version":1,"files":{"/a":"b"',
        json.dumps({"schema": "bringup/detect", "version": 1}).encode(),
        json.dumps({"schema": "bringup/capture"}).encode(),
        json.dumps({**GOOD, "version": 2}).encode(),
        json.dumps({**GOOD, "files": []}).encode(),
        json.dumps({**GOOD, "files": {"/a": 7}}).encode(),
        json.dumps({**GOOD, "commands": {"uname": "x"}}).encode(),
        json.dumps({**GOOD, "links": {"/a": None}}).encode(),
        json.dumps({**GOOD, "dirs": "/sys"}).encode(),
        json.dumps({**GOOD, "files": {"relative": "x"}}).encode(),
        json.dumps({**GOOD, "files": {"/../etc/shadow": "x"}}).encode(),
        json.dumps({**GOOD, "dirs": ["/a/../../b"]}).encode(),
        json.dumps({**GOOD, "files": {"/a\0b": "x"}}).encode(),
        json.dumps({**GOOD, "files": {"/a" * 4000: "x"}}).encode(),
        b'{"schema":"bringup/capture","version":1,"about":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
    ids=range(20),
)
def test_what_is_no_capture_is_refused_with_a_reason(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(data)
    with pytest.raises(InputError) as caught:
        open_host(str(tmp_path / "x.json"), None)
    assert caught.value.code == "capture-unreadable"
    assert caught.value.params["reason"]


def test_a_capture_may_begin_with_a_byte_order_mark() -> None:
    assert parse_capture(b"\xef\xbb\xbf" + json.dumps(GOOD).encode()) == parse_capture(json.dumps(GOOD).encode())


def test_no_file_a_folder_a_pipe_and_a_giant_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "giant").open("wb") as giant:
        giant.truncate(65 << 20)
    for name in ("none", ".", "pipe", "giant"):
        with pytest.raises(InputError):
            load_capture(str(tmp_path / name))


def test_circles_and_towers_of_links_end() -> None:
    links = {"/sys/a": "b", "/sys/b": "a", "/sys/tower": "tower/x/" * 500, "/sys/up": "../" * 900 + "sys/file"}
    host = captured(links=links, files={"/sys/file": "1"}, dirs=[])
    assert host.read("/sys/a") is None
    assert host.exists("/sys/a/b/c") is False
    assert host.read("/sys/tower") is None
    assert host.read("/sys/up") == "1"


def test_a_path_may_be_file_and_folder_at_once_without_harm() -> None:
    host = captured(files={"/sys/bus/pci/devices": "x", "/sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de"}, dirs=[])
    assert detect(host).accelerators == ()


def _mutated(document: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """Return the capture with some of its pieces cut, swapped, emptied, or replaced by what does not belong there.

    Links run in circles now and then, and one text in a hundred is enormous.
    """
    junk = ["", "\0", "-1", "9" * 400, "0x", "N/A", "[Not Supported]", "∞ \ud7ff", "{" * 50, "0-99999999", "a\n" * 50, "../" * 20]
    for part in ("files", "links"):
        table = document[part]
        for key in chance.sample(sorted(table), k=min(len(table), 60)):
            act = chance.randrange(5)
            if act == 0:
                del table[key]
            elif act == 4:
                table[key] = key if part == "links" else chance.choice(junk) * (200_000 if chance.random() < 0.005 else 30)
            elif act == 1:
                table[key] = chance.choice(junk)
            elif act == 2 and isinstance(table[key], str):
                table[key] = table[key][: chance.randrange(len(table[key]) + 1)]
            else:
                table[key] = table[chance.choice(sorted(table))]
    for command in document["commands"].values():
        if chance.random() < 0.5:
            cut = chance.randrange(len(command["stdout"]) + 1)
            command["stdout"] = command["stdout"][cut:] if chance.random() < 0.5 else command["stdout"][:cut] + chance.choice(junk)
            command["status"] = chance.choice([0, 1, 127, None, -9])
    other = chance.choice(sorted(document["commands"]))
    for line in chance.sample(_SPELLINGS, k=3):
        document["commands"][line] = {"stdout": document["commands"][other]["stdout"], "stderr": chance.choice(junk), "status": 0}
    return document


_SPELLINGS = (
    "bringup nvml",
    "bringup gpu-users",
    "nvidia-smi -q -x",
    "nvidia-smi",
    "dkms status",
    "mokutil --list-enrolled",
    "lspci -vvv",
    "ip -j addr",
)


def _fuzz(rounds: int, seed: int) -> None:
    chance = random.Random(seed)
    texts = [(scoring.MACHINES / f"{name}.json").read_text(encoding="utf-8") for name in scoring.names()]
    texts = sorted(texts, key=len)[:12]
    for _ in range(rounds):
        document = _mutated(json.loads(chance.choice(texts)), chance)
        machine = detect(CapturedHost(parse_capture(json.dumps(document).encode())))
        msgspec.json.encode(machine)
        for found in (*judge_hardware(machine), *judge_firmware(machine)):
            say_finding("en", found, "sentence")


def test_an_enormous_release_file_keeps_nobody_waiting() -> None:
    began = time.process_time()
    capture = Capture(schema="bringup/capture", version=1, files={"/etc/os-release": "ID=" + "9" * 40_000_000})
    assert detect(CapturedHost(capture)).os.version is None
    assert time.process_time() - began < 5


def test_mutated_captures_never_crash_detection() -> None:
    _fuzz(500, seed=1)


@pytest.mark.long
def test_ten_thousand_mutated_captures_never_crash_detection() -> None:
    _fuzz(10_000, seed=2)


# -- recording --------------------------------------------------------------------------------------------------------


def _facts(machine: Machine) -> dict[str, Any]:
    """Return the document without the addresses, which a capture has other ones for."""
    document: dict[str, Any] = msgspec.to_builtins(machine)
    for network in document["networks"]:
        network["addresses"] = len(network["addresses"])
    return document


def test_this_machine_and_its_capture_give_the_same_facts() -> None:
    live = LocalHost()
    data = record(live)
    assert _facts(detect(CapturedHost(parse_capture(data)))) == _facts(detect(live))


@pytest.mark.parametrize("name", ["rtx4090x4-epyc", "laptop-katana-4070-secureboot", "wsl2-rtx3060", "vm-2080ti-library-mismatch"])
def test_a_capture_of_a_captured_machine_gives_the_same_facts(name: str) -> None:
    first = open_host(str(scoring.MACHINES / f"{name}.json"), None)
    assert _facts(detect(CapturedHost(parse_capture(record(first))))) == _facts(detect(first))


def test_a_capture_of_a_mounted_system_gives_the_same_facts(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for folder in ("etc", "usr/lib", "lib/modules/6.8.0-60-generic", "var/lib/dpkg", "usr/local/cuda-12.8"):
        (root / folder).mkdir(parents=True)
    (root / "usr/lib/os-release").write_text('ID=ubuntu\nVERSION_ID="24.04"\nPRETTY_NAME="Ubuntu 24.04.2 LTS"\nVERSION_CODENAME=noble\n')
    (root / "etc/os-release").symlink_to("../usr/lib/os-release")
    stanza = "Package: {}\nStatus: install ok installed\nMaintainer: Somebody <somebody@example.org>\nVersion: {}\n"
    listed = (("libc6", "2.39-0ubuntu8.4"), ("cuda-toolkit-12-8", "12.8.1-1"), ("vim", "2:9.1"), ("libnccl2", "2.26.2-1+cuda12.8"))
    (root / "var/lib/dpkg/status").write_text("\n".join(stanza.format(*package) for package in listed))
    (root / "usr/local/cuda-12.8/version.json").write_text('{"cuda": {"name": "CUDA SDK", "version": "12.8.1"}}')
    host = RootedHost(str(root), open_host(str(scoring.MACHINES / "rtx5090-u2404-fresh.json"), None))
    live = detect(host)
    assert (live.os.kernel, live.os.glibc, live.toolkits[0].version, live.nccl[0].version) == (
        "6.8.0-60-generic",
        "2.39",
        "12.8.1",
        "2.26.2",
    )
    data = record(host)
    assert _facts(detect(CapturedHost(parse_capture(data)))) == _facts(live)
    assert b"somebody" not in data
    assert b"vim" not in data


def _secretive() -> CapturedHost:
    """Return a machine full of what must not travel."""
    return captured(
        about={"name": "galadriel.lorien.example"},
        files={
            "/etc/passwd": "root:x:0:0::/root:/bin/sh\nfrodo:x:1000:1000::/home/frodo:/bin/sh\nubuntu:x:1001:1001::/home/ubuntu:/bin/sh\n",
            "/etc/os-release": 'ID=ubuntu\nVERSION_ID="24.04"\nPRETTY_NAME="Ubuntu 24.04.2 LTS"\n',
            "/proc/cmdline": "root=UUID=7f3a9c1e-1111-4222-8333-abcdefabcdef ip=10.1.2.3 http_token=hunter2 quiet",
            "/sys/firmware/efi/fw_platform_size": "64\n",
            "/proc/version": "Linux version 6.8.0 (frodo@galadriel) (gcc 13)\n",
            "/sys/class/net/eth0/address": "3c:ec:ef:12:34:56\n",
            "/sys/class/net/eth0/operstate": "up\n",
            "/sys/class/net/eth0/type": "1\n",
            "/sys/class/dmi/id/product_serial": "S4Z9XK77\n",
            "/sys/class/dmi/id/bios_version": "2.1 S4Z9XK77\n",
            "/home/frodo/.venv/pyvenv.cfg": "home = /home/frodo/.local\nversion = 3.12.3\n",
            "/home/ubuntu/.venv/pyvenv.cfg": "version = 3.12.3\n",
        },
        dirs=[],
        commands={
            "uname -a": {"stdout": "Linux galadriel.lorien.example 6.8.0 #1 SMP x86_64 GNU/Linux\n", "status": 0},
            "ip -j addr": {
                "stdout": json.dumps(
                    [
                        {
                            "ifname": "eth0",
                            "address": "3c:ec:ef:12:34:56",
                            "addr_info": [
                                {"local": "10.1.2.3", "prefixlen": 24},
                                {"local": "fe80::3eec:efff:fe12:3456", "prefixlen": 64},
                            ],
                        }
                    ]
                ),
                "status": 0,
            },
            "nvidia-smi -q": {
                "stdout": "==============NVSMI LOG==============\nDriver Version : 550.1\n"
                "GPU 00000000:01:00.0\n    Product Name : NVIDIA A100\n"
                "    Serial Number                         : 1321020012345\n    GPU UUID : GPU-7f3a9c1e-aaaa-4222-8333-abcdefabcdef\n",
                "status": 0,
            },
            "mokutil --list-enrolled": {
                "stdout": "[key 1]\nSHA1 Fingerprint: 7c:39:b1:01:02:03:04:05:06:07:08:09:0a:0b:0c:0d:0e:0f:10:11\n"
                "Certificate:\n    Data:\n        Serial Number:\n            b9:41:24:a0:18:2c:92:67\n"
                "        Subject: CN=galadriel Secure Boot Module Signature key\n",
                "status": 0,
            },
            "dmidecode -t memory": {"stdout": "Memory Device\n\tSize: 64 GB\n\tSerial Number: 80CE01DD\n\tType: DDR5\n", "status": 0},
        },
    )


SECRETS = (
    "galadriel",
    "lorien",
    "frodo",
    "hunter2",
    "3c:ec:ef:12:34:56",
    "10.1.2.3",
    "3eec:efff",
    "7f3a9c1e",
    "S4Z9XK77",
    "1321020012345",
    "80CE01DD",
    "b9:41:24",
    "7c:39:b1",
)


@pytest.mark.parametrize("secret", SECRETS)
def test_nothing_in_a_capture_names_the_machine_or_a_person(secret: str) -> None:
    assert secret not in record(_secretive()).decode()


def test_stand_ins_are_the_same_everywhere_and_facts_stay() -> None:
    host = _secretive()
    document = json.loads(record(host))
    assert '"address": "02:00:00:00:00:01"' in document["commands"]["ip -j addr"]["stdout"]
    assert "ID=ubuntu" in document["files"]["/etc/os-release"]
    assert "/home/user/.venv/pyvenv.cfg" in document["files"]
    again = detect(CapturedHost(parse_capture(record(host))))
    assert (again.os.id, again.os.kernel, again.memory.type, again.driver.library_version) == ("ubuntu", "6.8.0", "DDR5", "550.1")
    assert [environment.python for environment in again.environments] == ["3.12.3", "3.12.3"]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("4x-rtx4090-working", "4× RTX 4090 · Ubuntu 22.04.4"),
        ("rtx5090-no-driver", "RTX 5090 · Ubuntu 24.04.2"),
        ("rtx2080ti-driver-mismatch", "RTX 2080 Ti · Ubuntu 22.04"),
    ],
)
def test_the_machines_to_rehearse_on_are_what_their_names_say(name: str, line: str) -> None:
    assert headline(detect(open_host(resources.path_of("demo", f"{name}.json"), None))) == line


def test_the_real_names_of_this_machine_are_not_in_its_capture() -> None:
    data = record(LocalHost()).decode()
    for folder in Path("/sys/class/net").iterdir():
        address = (folder / "address").read_text().strip() if (folder / "address").exists() else ""
        assert not address.strip("0:") or address not in data
    for found in ("/sys/class/dmi/id/product_serial", "/sys/class/dmi/id/product_uuid", "/etc/machine-id"):
        path = Path(found)
        serial = path.read_text().strip() if path.exists() and os.access(path, os.R_OK) else ""
        assert not serial or serial not in data
    assert json.loads(data)["commands"]["uname -a"]["stdout"].startswith("Linux host ")
