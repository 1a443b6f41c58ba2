"""What a run does before it takes the driver away: names who uses the GPUs, and waits, tells them, or leaves it to the reboot."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from steps.detect.neighbours import Neighbour, Neighbours, neighbours
from steps.headless.console import DONE, Console
from steps.host.base import Host
from steps.host.local import LocalHost, pause
from steps.model.base import Param, phrase
from steps.text import Language, say

IN_THE_WAY = 12
WAIT, NOTIFY, REBOOT, STOP = "wait", "notify", "reboot", "stop"
_LOOK_AGAIN = 5.0
Ask = Callable[[str], str]


def make_way(console: Console, ask: Ask, host: Host | None = None) -> int:
    """Return 0 once nobody's work would end by it, or the reboot was chosen; 12 when the person stops here."""
    machine = host or LocalHost()
    language = console.asked.language
    there = neighbours(machine)
    console.lines(told(there, language))
    while there.at_work:
        answer = ask(f"{_say(language, 'ask')} ({WAIT}/{NOTIFY}/{REBOOT}/{STOP}): ").strip()
        if answer == REBOOT:
            console.out(_say(language, "at-reboot"))
            return DONE
        if answer == NOTIFY:
            machine.run(("wall", _say(language, "wall", machine=machine.name)))
        if answer in (WAIT, NOTIFY):
            there = _until_free(console, machine, there)
        elif answer == STOP:
            return IN_THE_WAY
    console.out(_say(language, "free"))
    return DONE


def _until_free(console: Console, host: Host, there: Neighbours) -> Neighbours:
    """Look until nobody is at work, and say who is left whenever that changes."""
    said = there.at_work
    while there.at_work:
        pause(_LOOK_AGAIN)
        there = neighbours(host)
        if there.at_work and there.at_work != said:
            console.lines(told(there, console.asked.language))
        said = there.at_work
    return there


def told(there: Neighbours, language: Language) -> Iterator[str]:
    """Yield a line for everybody who was found."""
    for one in there.found:
        yield _say(language, one.kind, **_named(one))
    if there.partial:
        yield _say(language, "partial")


def _named(one: Neighbour) -> dict[str, Param]:
    return {"name": one.name, "pid": one.pid or "?", "person": one.person or "?", "where": one.where or "?"}


def _say(language: Language, key: str, /, **params: Param) -> str:
    return say(language, phrase(f"cli.neighbours.{key}", **params))
