"""The commands that a person typed or a script ran, where a log shows them."""

from __future__ import annotations

import re
import shlex

from steps.doctor.events.base import Event, parses
from steps.doctor.told import Place
from steps.host.prompts import HISTORY, PROMPT, RUNNERS

_SWITCHES = ("envycontrol", "supergfxctl", "optimus-manager", "system76-power")
"""They choose the card of a laptop, as prime-select does."""
_TYPED = "|".join(map(re.escape, (*RUNNERS, *_SWITCHES)))
_BEFORE = rf"{PROMPT}[ ]*|[ \t]{{0,6}}{HISTORY}|[^\n$#>❯➜]{{0,60}}(?:[$#>➜]|❯{{1,3}}) +|\+ |Commandline: "
"""What stands before a command; since one of these programs follows, anything may stand before a prompt's mark."""


class Command(Event):
    """One command; `sudo` and what a prompt printed are gone."""

    words: tuple[str, ...]

    @property
    def program(self) -> str:
        """Return the name of the program, without its folder."""
        return self.words[0].rsplit("/", 1)[-1]


@parses(
    rf"^(?:{_BEFORE})?(?:cd \S+ *(?:&&|;) *)?(?:(?:sudo|env)(?: -\w+| \w+=\S+)* +)?"
    rf"(?P<line>(?:(?:\S*/)?(?:{_TYPED})|\S+\.run|\S*/install\.sh) \S.*|\S+\.run)$",
    " install", ".run", "docker ", "podman ", "nerdctl ", "kubectl ", "oc exec", "crictl ", "singularity ", "apptainer ",
    "torchrun ", "mpirun ", "modprobe ", "prime-select ", "dkms ", "export ", "/install.sh",
    *(f"{name} " for name in _SWITCHES),
    typed=True,
)  # fmt: skip
def command(found: re.Match[str], at: Place) -> Command | None:
    """Recognise a command line, with or without the prompt before it."""
    line = found["line"]
    try:
        words = tuple(shlex.split(line, comments=True))
    except ValueError:
        words = tuple(line.split())
    return Command(place=at, words=words) if words else None
