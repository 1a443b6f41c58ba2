"""What programs say of direct copies between cards, and of the cards that they use."""

from __future__ import annotations

import re

from steps.doctor.events.base import Event, parses
from steps.doctor.told import Place

_NO_HELP = re.compile(
    r"(?:does ?n[o']?t|not|no|without) (?:\w+ ){0,2}(?:help|work|change|fix|solve|effect|differen)|still (?:hang|fail|stuck)"
)
_HELPED = re.compile(
    r"(?<![\w./-])(?:help(?:s|ed)?|work(?:s|ed|ing)?|fix(?:es|ed)?|solv(?:es|ed)|runs?|ran|running|trains|finish(?:es|ed)|ok|fine|pass(?:es|ed)?)"
    r"(?![\w/-]|\.\w)"
)
"""What a person says of a run; the name of a program or of a script in the same line says nothing."""


class P2pSwitch(Event):
    """Whether a run without direct copies worked; `None`: the switch is set, and nobody says what came of it."""

    helps: bool | None


@parses(r"NCCL_P2P_DISABLE(?:['\"]?\]? ?[=:] ?['\"]?1|\b)(?P<after>[^\n]{0,100})", "NCCL_P2P_DISABLE", typed=True)
def p2p_switch(found: re.Match[str], at: Place) -> P2pSwitch:
    """Recognise the switch, and a person's words about it."""
    after = found["after"].lower()
    if _NO_HELP.search(after):
        return P2pSwitch(place=at, helps=False)
    return P2pSwitch(place=at, helps=True if _HELPED.search(after) else None)


class DirectCopies(Event):
    """NCCL sends from card to card over the bus: the driver offers it."""


@parses(r"Channel \S+ ?: \d+\[\w+\] -> \d+\[\w+\] via P2P/(?:direct pointer|IPC|CUMEM)", "via P2P/")
def direct_copies(found: re.Match[str], at: Place) -> DirectCopies:
    """Recognise a channel of NCCL's log."""
    return DirectCopies(place=at)


class CardNamed(Event):
    """A program names a card that it uses or found."""

    name: str


@parses(
    r"(?:^GPU \d+: |device +\d+ \[[\w:.]+\] |^Device \d+: \"?|\bGPU \d+ \(|[Ff]ound device \d+ with properties: name: )"
    r"(?P<name>(?:NVIDIA|GeForce|Tesla|Quadro|RTX)\b[^\n(,\"]{0,50}?)(?= *(?:\(|,|\"|$))",
    "NVIDIA ", "GeForce", "Tesla ", "Quadro", "RTX ",
    typed=True,
)  # fmt: skip
def card_named(found: re.Match[str], at: Place) -> CardNamed:
    """Recognise nccl-tests' and CUDA's samples' headings, and PyTorch's report of the environment."""
    return CardNamed(place=at, name=found["name"].strip())


class KernelsTooLarge(Event):
    """NCCL's kernels want more memory than this generation of cards gives one: they were made for another."""


@parses(r"ncclMaxSharedMem \d+ exceeds device/fn maxSharedMem \d+", "ncclMaxSharedMem")
def kernels_too_large(found: re.Match[str], at: Place) -> KernelsTooLarge:
    """Recognise the note before the launch fails."""
    return KernelsTooLarge(place=at)


class P2pWrong(Event):
    """Direct copies arrive wrong."""


@parses(
    r"Verification error @ element|P2P\b[^\n]{0,60}(?:data (?:mismatch|corrupt)|wrong data|FAILED)|Test failed!.{0,40}[Pp]eer",
    "Verification error @",
    "P2P",
    "Test failed!",
)
def p2p_wrong(found: re.Match[str], at: Place) -> P2pWrong:
    """Recognise NVIDIA's simpleP2P sample that finds wrong values."""
    return P2pWrong(place=at)


class Redirects(Event):
    """What a bridge's ACS does with direct copies: sends them up to the processor, or not."""

    on: bool


@parses(r"ACSCtl:\s*SrcValid[+-] TransBlk[+-] ReqRedir(?P<requests>[+-]) CmpltRedir(?P<answers>[+-])", "ACSCtl")
def redirects(found: re.Match[str], at: Place) -> Redirects:
    """Recognise lspci's line."""
    return Redirects(place=at, on=found["requests"] == found["answers"] == "+")


class CollectiveDone(Event):
    """A benchmark's collective came to its end: it printed what it measured."""


@parses(
    r"^# Avg bus bandwidth +: +[\d.]+|^# Out of bounds values +: +0 OK|"
    r"^ +\d+ +\d+ +(?:float|double|half|bfloat16|u?int\d+|fp8\w*) +\w+ +-?\d+ +[\d.]+ +[\d.]+ +[\d.]+ ",
    "# Avg bus bandwidth", "# Out of bounds values", "     float ", "     half ", " bfloat16 ",
)  # fmt: skip
def collective_done(found: re.Match[str], at: Place) -> CollectiveDone:
    """Recognise the lines of nccl-tests and rccl-tests."""
    return CollectiveDone(place=at)
