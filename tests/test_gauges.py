"""What the GPUs do, by the stand-in for NVML: the program that asks and the feed that asks it are the real ones."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from steps.host.gauge_feed import GaugeFeed
from steps.model.gauge import Gauge, Gauges

COMMAND = (sys.executable, "-B", "-m", "steps.host.gauges")
"""The program of this checkout, which needs not be the one that is installed."""
HEAD = "driver 570.124.06\nnvml 12.570.124.06\ncuda 12080\n"
CARD = (
    "card\nbus 00000000:{bus}:00.0\nname NVIDIA GeForce RTX 4090\nmemory 25757220864\nused 19541262336\nlink 1 4 16 16\nbusy 98\nstate 2\n"
    "temperature 83\npower 412300\nlimit 450000\nclock 1410 2520\nfan 98\n"
)
HOT, LIMITED = "slowed 0x20\n", "slowed 0x04\n"
QUICK = 0.1
"""Seconds that a turn may take at most, whatever the driver does."""

Watched = Callable[[str], GaugeFeed]


@pytest.fixture
def watched(nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    """Return what begins to watch a machine that is described by a text."""
    file = tmp_path / "nvml.txt"
    monkeypatch.setenv("LD_LIBRARY_PATH", str(nvml_library))
    monkeypatch.setenv("NVML_STAND_IN", str(file))
    feeds: list[GaugeFeed] = []

    def watch(text: str) -> GaugeFeed:
        file.write_text(text, encoding="ascii")
        feeds.append(GaugeFeed(COMMAND))
        return feeds[-1]

    yield watch
    for feed in feeds:
        feed.close()


def whatever(found: Gauges) -> bool:
    return True


def until(feed: GaugeFeed, holds: Callable[[Gauges], bool]) -> Gauges:
    """Take turns until an answer is as wanted."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        found = feed.turn()
        if found is not None and holds(found):
            return found
        time.sleep(0.01)
    raise AssertionError(f"did not come: {feed.turn()}")


def answered(feed: GaugeFeed) -> tuple[Gauge, ...]:
    return until(feed, whatever).cards


def test_a_card_tells_what_it_does_and_who_holds_it(watched: Watched) -> None:
    text = HEAD + CARD.format(bus="01") + LIMITED + f"process {os.getpid()} 1000\nprocess 4000000000 19000000000\ndrawing 1 33000000\n"
    (card,) = answered(watched(text))
    assert (card.name, card.address, card.error, card.late) == ("NVIDIA GeForce RTX 4090", "00000000:01:00.0", None, False)
    assert (card.utilization, card.memory_used, card.memory_total, card.temperature) == (98, 19541262336, 25757220864, 83)
    assert (card.watts, card.limit_watts, card.mhz, card.max_mhz, card.fan_percent) == (412.3, 450.0, 1410, 2520, 98)
    assert (card.generation, card.max_generation, card.width, card.performance_state) == (1, 4, 16, 2)
    assert card.slowed == ("power-cap",)
    assert card.loads is not None
    assert [(one.pid, one.bytes, one.kind) for one in card.loads] == [
        (4000000000, 19000000000, "compute"),
        (1, 33000000, "graphics"),
        (os.getpid(), 1000, "compute"),
    ]
    assert [one.name is None for one in card.loads] == [True, False, False]


REASONS = {
    "0": (),
    "0x1": ("idle",),
    "0x8": ("hw-slowdown",),
    "0x48": ("hw-thermal", "hw-slowdown"),
    "0x88": ("power-brake", "hw-slowdown"),
    "0x112": ("sync-boost", "set-clocks", "display-clocks"),
}


def test_every_reason_for_low_clocks_has_its_name(watched: Watched) -> None:
    cards = answered(watched(HEAD + "".join(CARD.format(bus="01") + f"slowed {bits}\n" for bits in REASONS)))
    assert [card.slowed for card in cards] == list(REASONS.values())


def test_what_a_card_does_not_tell_is_not_known(watched: Watched) -> None:
    (card,) = answered(watched(HEAD + "card\nname NVIDIA GB10\n"))
    assert card == Gauge(index=0, name="NVIDIA GB10", loads=())


def test_of_two_cards_one_is_too_hot_and_one_is_lost_while_it_is_watched(watched: Watched) -> None:
    feed = watched(HEAD + CARD.format(bus="01") + HOT + CARD.format(bus="41") + "lost 60\n")
    assert [card.error for card in answered(feed)] == [None, None]
    hot, lost = until(feed, lambda found: found.cards[1].error is not None).cards
    assert (hot.slowed, hot.utilization) == (("sw-thermal",), 98)
    assert lost == Gauge(
        index=1, error=15, name="NVIDIA GeForce RTX 4090", address="00000000:41:00.0", max_generation=4, max_width=16, max_mhz=2520
    )


def test_a_card_that_was_lost_before_keeps_its_row(watched: Watched) -> None:
    first, second = answered(watched(HEAD + CARD.format(bus="01") + "handle 15\n" + CARD.format(bus="41")))
    assert (first, second.utilization) == (Gauge(index=0, error=15), 98)


def test_a_wedged_card_holds_neither_the_others_nor_who_asks(watched: Watched) -> None:
    feed = watched(HEAD + CARD.format(bus="01") + CARD.format(bus="41") + "sleepy power\n")
    first, second = answered(feed)
    assert (first.late, first.utilization, second.late, second.utilization) == (False, 98, True, None)
    begun = time.monotonic()
    feed.turn()
    feed.close()
    assert time.monotonic() - begun < QUICK


@pytest.mark.parametrize("where", ["init", "count"])
def test_a_driver_that_hangs_is_silence_and_nobody_waits(watched: Watched, where: str) -> None:
    feed = watched(f"{HEAD}hang {where}\n{CARD.format(bus='01')}")
    feed.turn()
    deadline = time.monotonic() + 1.5
    longest = 0.0
    while time.monotonic() < deadline:
        begun = time.monotonic()
        assert feed.turn() is None
        longest = max(longest, time.monotonic() - begun)
        time.sleep(0.05)
    assert feed.silent > 1
    assert longest < QUICK


@pytest.mark.parametrize("code", [9, 12, 18])
def test_a_driver_that_does_not_start_says_its_code_and_is_asked_again(watched: Watched, code: int) -> None:
    feed = watched(f"{HEAD}init {code}\n")
    assert until(feed, whatever).error == code
    feed.turn()
    assert until(feed, whatever).error == code


def test_a_program_that_cannot_be_started_or_ends_at_once_is_silence() -> None:
    for command in (("/no/such/program",), (sys.executable, "-c", "pass"), (sys.executable, "-c", "print('{')")):
        feed = GaugeFeed(command)
        try:
            deadline = time.monotonic() + 20
            while feed.silent <= 0.2 and time.monotonic() < deadline:
                assert feed.turn() is None
                time.sleep(0.02)
            assert feed.silent > 0.2
        finally:
            feed.close()


def test_closing_ends_the_program(watched: Watched) -> None:
    feed = watched(HEAD + CARD.format(bus="01"))
    answered(feed)
    child = feed._child
    assert child is not None
    feed.close()
    assert child.poll() is not None
