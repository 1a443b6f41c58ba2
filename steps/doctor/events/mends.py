"""What a person did between a trouble and a success: only then did it end the trouble, and only on the same machine."""

from __future__ import annotations

import re

from steps.doctor.events.base import Event, parses
from steps.doctor.told import Place


class Mended(Event):
    """Something that makes kernel and user space one version again: a restart, another module, or a package."""


_WORK = r"[^\n]*?(?:install|upgrade|update|remove|purge|-[SUiRP])"
_LONG = rf"(?:apt-get|aptitude|rpm-ostree) {_WORK}|(?:\S*/)?NVIDIA-Linux-\S+\.run|rmmod nvidia|modprobe \S|systemctl reboot\b|shutdown -r\b"
_SHORT = ("apt", "dnf", "yum", "zypper", "pacman", "dpkg", "rpm")
"""Names that stand in many a word: only behind `sudo`, and the usual ones behind root's and a user's prompt, are they looked for."""
_TOLD = r"\b(?:rebooted|after (?:a |the )?reboot(?:ing)?|restarted the (?:machine|server|computer))\b|重启(?:之?后|了)"


@parses(
    rf"(?:^|[$#%>❯➜;&|] ?)(?:sudo )?(?:{_LONG})|(?:^|[$#%>❯➜;&|] ?)sudo (?:(?:{'|'.join(_SHORT)}) {_WORK}|reboot\b|init 6\b)|"
    rf"[$#] (?:(?:apt|dnf) {_WORK}|reboot\b)|{_TOLD}",
    "apt-get ", "aptitude ", "rpm-ostree ", "NVIDIA-Linux-", "rmmod nvidia", "modprobe ", "systemctl reboot", "shutdown -r",
    *(f"sudo {name} " for name in _SHORT), "sudo reboot", "sudo init 6", "$ apt ", "# apt ", "$ dnf ", "# dnf ", "$ reboot", "# reboot",
    "rebooted", "after reboot", "after a reboot", "after the reboot", "restarted the", "重启",
    typed=True,
)  # fmt: skip
def mended(found: re.Match[str], at: Place) -> Mended:
    """Recognise it as a command, or told in prose."""
    return Mended(place=at)


class Asked(Event):
    """Somebody ran nvidia-smi; `host` where the prompt names it, `elsewhere` where it ran on another machine or in a container."""

    host: str | None = None
    elsewhere: bool = False


_ELSEWHERE = re.compile(r"\b(?:ssh|pdsh|clush|srun|salloc|ansible|docker|podman|nerdctl|kubectl|oc|apptainer|singularity)\b")


@parses(
    r"^(?:[^\n@$#%>❯➜]{0,30}?(?:[\w.-]+)@(?P<host>[\w.-]+))?[^\n$#%>❯➜]{0,60}(?:[$#%>➜]|❯{1,3}) *(?P<line>[^\n]*\bnvidia-smi\b[^\n]*)$",
    "nvidia-smi",
    typed=True,
)
def asked(found: re.Match[str], at: Place) -> Asked:
    """Recognise it behind a prompt."""
    return Asked(place=at, host=found["host"], elsewhere=_ELSEWHERE.search(found["line"]) is not None)


class Viewed(Event):
    """Somebody printed a file: what follows was written by others, or at another time."""


@parses(
    r"^[^\n$#%>❯➜]{0,80}(?:[$#%>➜]|❯{1,3}) *(?:sudo +)?(?:tail|cat|zcat|less|grep|zgrep|journalctl|ssh) [^\n]*$",
    "tail /", "tail -", "$ cat ", "# cat ", "sudo cat ", "less /", "$ ssh ", "# ssh ",
    typed=True,
)  # fmt: skip
def viewed(found: re.Match[str], at: Place) -> Viewed:
    """Recognise the command behind a prompt."""
    return Viewed(place=at)
