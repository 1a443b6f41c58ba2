"""Texts of any origin into events: what is recognised, and what stamps, escapes and broken lines do to it."""

from __future__ import annotations

import gzip
import html
import json
import random
import re
from pathlib import Path

import pytest

from steps.doctor.events.base import Event, Events, parses
from steps.doctor.events.faults import Xid
from steps.doctor.events.kernel import ApiMismatch, NvlinkCore
from steps.doctor.events.nccl import ConnectUnnamed
from steps.doctor.events.reading import Reader
from steps.doctor.events.search import Literals
from steps.doctor.events.vendors import KfdClosed
from steps.host.stream import blocks
from tests.doctor.kit import events

MISMATCH = (
    "NVRM: API mismatch: the client has the version 515.48.07, but\n"
    "NVRM: this kernel module has the version 510.73.05.  Please\n"
    "NVRM: make sure that this kernel module and all NVIDIA driver\n"
    "NVRM: components have the same version.\n"
)


def stamped(stamp: str) -> str:
    return "".join(f"{stamp}{line}\n" for line in MISMATCH.splitlines())


FORMS: dict[str, bytes] = {
    "plain": MISMATCH.encode(),
    "one-line": (MISMATCH.replace("\n", " ").strip() + "\n").encode(),
    "dmesg": stamped("[    5.559842] ").encode(),
    "dmesg-goes-on": MISMATCH.replace("\nNVRM: ", "\n               NVRM: ").replace("NVRM: API", "[ 5.559842] NVRM: API").encode(),
    "dmesg-caller": stamped("[    5.559842] [   T1946] ").encode(),
    "dmesg-x": stamped("kern  :err   : [    5.559842] ").encode(),
    "dmesg-x-iso": stamped("kern  :err   : 2025-01-25T10:34:54,859532+00:00 ").encode(),
    "journal-monotonic": stamped("[    5.559842] box kernel: ").encode(),
    "talos": stamped("192.0.2.10: kern:     err: [2025-11-25T13:58:49.123456789Z]: ").encode(),
    "image-build": stamped("#12 33.26 ").encode(),
    "ray": stamped("(Runner pid=868697) ").encode(),
    "torchrun": stamped("[rank0]: ").encode(),
    "kubectl": stamped("[pod/train-0/main] ").encode(),
    "bullets": stamped("- [    5.559842] ").encode(),
    "actions": stamped("2026-02-03T10:11:12.1234567Z ").encode(),
    "json-lines": "".join(json.dumps({"log": f"{line}\n", "stream": "stderr"}) + "\n" for line in MISMATCH.splitlines()).encode(),
    "json": (json.dumps({"level": "error", "msg": "said", "error": MISMATCH}) + "\n").encode(),
    "compose": stamped("trainer-1  | ").encode(),
    "dmesg-T": stamped("[Fri Apr  5 10:11:12 2024] ").encode(),
    "syslog": stamped("Apr  5 10:11:12 box kernel: [   12.345678] ").encode(),
    "journal": stamped("2024-04-05T10:11:12.123456+0200 box kernel: ").encode(),
    "rsyslog": ("Apr  5 10:11:12 box kernel: " + MISMATCH.strip().replace("\n", "#012") + "\n").encode(),
    "coloured": ("\x1b[32m[    5.55] \x1b[0m\x1b[1m" + MISMATCH).encode(),
    "carriage-returns": MISMATCH.replace("\n", "\r\n").encode(),
    "utf-16": MISMATCH.encode("utf-16"),
    "utf-16-without-mark": MISMATCH.encode("utf-16-le"),
    "nuls": b"\0\0\0" + MISMATCH.encode() + b"\0" * 40,
    "power-cut": b"\0" * 2001 + MISMATCH.encode(),
    "power-cut-between": b"May 1 12:00:00 box cron[1]: tick\n" + b"\0" * 2000 + MISMATCH.encode(),
    "power-cut-utf-16": b"\0" * 64 + MISMATCH.encode("utf-16-be"),
    "utf-16-be-without-mark": MISMATCH.encode("utf-16-be"),
    "latin-1": "Gerät\n".encode("latin-1") + MISMATCH.encode(),
    "no-last-newline": MISMATCH.strip().encode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_message_is_one_event_in_every_form(form: str) -> None:
    found = events(FORMS[form]).all(ApiMismatch)
    assert [(event.client, event.module) for event in found if event.client] == [("515.48.07", "510.73.05")]


@pytest.mark.parametrize("cut", ["has the version 515.48.07", "515.48.07, but\n", "NVRM: this kernel", "has the version 510"])
def test_a_message_that_was_cut_in_the_middle_tells_what_stands_before_the_cut(cut: str) -> None:
    found = events(MISMATCH[: MISMATCH.index(cut) + len(cut)]).all(ApiMismatch)
    assert [(event.client, event.module) for event in found] == [("515.48.07", None)]


def test_where_a_block_ends_does_not_matter() -> None:
    text = (b"noise\n" * 50 + MISMATCH.encode() + b"noise\n" * 50) * 2
    for size in (1, 7, 64, 313):
        cut = [text[at : at + size] for at in range(0, len(text), size)]
        assert len([event for event in events(*cut).all(ApiMismatch) if event.client]) == 2


def test_the_time_of_a_line_is_kept_and_not_quoted() -> None:
    (event,) = events("[   13.500000] nvidia-nvlink: Unregistered Nvlink Core, major 1\n").all(NvlinkCore)
    assert (event.place.seconds, event.place.text) == (13.5, "nvidia-nvlink: Unregistered Nvlink Core, major 1")


class Tick(Event):
    """An event that floods."""


def test_of_a_flood_the_first_and_the_last_are_kept_and_all_are_counted() -> None:
    ticks = parses(r"tick \d+", "tick")(lambda _, at: Tick(place=at))
    reads = Reader((ticks,), Events())
    reads.read("log", "".join(f"tick {number}\n" for number in range(10_000)))
    kept = [event.place.text for event in reads.events.all(Tick)]
    assert reads.events.count(Tick) == 10_000
    assert kept[0] == "tick 0"
    assert kept[-1] == "tick 9999"
    assert len(kept) <= 200


def test_every_place_of_every_literal_is_found_however_the_words_fall() -> None:
    chance = random.Random(20260731)
    words = ("NVML", "Xid", ".run", "依赖", "upgraded ", "dkms status", "requires use of the", "supported through the", "upgrade")
    literals = [word.encode() for word in words]
    parts = [*literals, b"\n", b"upgrad", b" the", b"requires use", b"V", b"x", b"NVM", b"of th"]
    text = b"".join(chance.choices(parts, k=30_000)) + b"requires use of the"
    expected = sorted((found.start(), literal) for literal in literals for found in re.finditer(b"(?=%s)" % re.escape(literal), text))
    search = Literals(literals)
    for one in (search, search.fitted(text), search.fitted(b"plain words\n" * 30_000)):
        assert sorted(set(one.hits(text))) == expected
    assert [at for at, _ in search.hits(b"NVML" + b"upgraded ")] == [0, 4, 4]


def test_a_log_is_read_from_a_file_packed_or_not(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text(MISMATCH)
    (tmp_path / "packed").write_bytes(gzip.compress(MISMATCH.encode()))
    for name in ("plain", "packed"):
        assert b"".join(blocks(str(tmp_path / name))).decode() == MISMATCH


def test_what_a_page_or_a_log_of_json_writes_otherwise_is_read_as_it_was_said() -> None:
    words = "NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    for form in (html.escape(words), words.replace("'", "&apos;"), json.dumps({"a": 1, "MESSAGE": f"\t{words}"}), f"{words} &c; &what;"):
        assert [event.number for event in events(f"{form}\n").all(Xid)] == [79]
    assert [event.client for event in events('x {"msg": "broken \\q"}\n' + MISMATCH).all(ApiMismatch) if event.client] == ["515.48.07"]


def test_a_reason_that_a_terminal_broke_is_the_same_reason() -> None:
    (closed,) = events("Unable to open /dev/kfd read-write: Permission\ndenied\n").all(KfdClosed)
    assert closed.trouble == "permission"
    (failed,) = events("Call to connect returned No  route   to host\n").all(ConnectUnnamed)
    assert failed.reason == "no-route"
