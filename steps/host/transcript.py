"""The commands that a person typed into a terminal, with what they printed, out of a pasted session."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import NamedTuple

MOST = 1 << 20
"""A longer text is a log, not what somebody pasted."""
_PROMPT = re.compile(
    r"^(?P<before>(?:\([\w.+-]+\) ?)?(?:\[?[\w.-]+@(?P<host>[\w.-]+)[^$#%\n]{0,60}|[~/][^\s$#%]{0,60}|))[ ]?[$#%❯➜] ?(?P<line>\S[^\n]*)$",
    re.MULTILINE,
)
_CONTAINER = re.compile(r"[0-9a-f]{12}")
"""A host name that docker made."""
_ENDS = re.compile(r"\s(?:\||&&|\|\||;|2?>)|;")
_FILES = ("/proc/driver/nvidia/version", "/sys/module/nvidia/version", "/etc/os-release", "/proc/cmdline", "/proc/driver/nvidia/params")
_TOLD = (
    "lspci", "lsmod", "modinfo", "modprobe", "nvidia-smi", "nvidia-smi.exe", "keyctl", "mokutil", "prime-select", "df", "lsblk", "ldconfig",
    "which", "nvcc", "getenforce", "apt-mark", "rocminfo", "hl-smi", "nvidia-ctk", "uname", "systemd-detect-virt", "rpm", "dkms",
    "sensors", "ps",
)  # fmt: skip
"""Programs whose output is a fact under the very words that were typed."""
_ASKED = (
    ("dpkg", "-l"), ("dpkg", "--list"), ("dpkg-query", "-W"), ("dpkg-query", "-l"), ("apt", "list"), ("apt", "policy"),
    ("apt-cache", "policy"), ("dnf", "list"), ("yum", "list"), ("dnf", "info"), ("yum", "info"), ("zypper", "se"), ("zypper", "search"),
    ("pacman", "-Q"), ("pacman", "-Qs"), ("pacman", "-Qi"), ("systemctl", "status"), ("systemctl", "is-active"),
)  # fmt: skip
"""Commands of which only these tell facts."""


class Session(NamedTuple):
    """What a pasted session tells: commands with their output, and files that were printed."""

    commands: Mapping[tuple[str, ...], str]
    files: Mapping[str, str]


_NVIDIA = re.compile(r"\bgrep\b[^|]*\bnvidia\b|-d *10de:", re.IGNORECASE)
_BUS = ("lspci", "-nn", "-d", "10de:")
"""The question for NVIDIA's devices, however a person asked it: only of this one an empty answer tells something."""


def session(text: str) -> Session:
    """Return the questions of a session that tell facts, each with its first answer; what ran inside a container is left out."""
    commands: dict[tuple[str, ...], str] = {}
    files: dict[str, str] = {}
    for line, output, ended in _steps(text):
        words = _words(line)
        if ended and not output.strip() and words[:1] == ("lspci",) and _NVIDIA.search(line):
            commands.setdefault(_BUS, "")
        if not output.strip() or not words:
            continue
        if words[0] == "cat" and len(words) == 2 and words[1] in _FILES:
            files.setdefault(words[1], output)
        elif words[0] in _TOLD or words[:2] in _ASKED:
            commands.setdefault(_plain(words), output)
        elif words[0] in ("ls", "find") and any(word.startswith(("/dev", "/lib/modules", "/run/nvidia")) for word in words):
            commands.setdefault(words, output)
    return Session(commands, files)


_KNOWN: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = (
    (
        ("dkms", "status"),
        re.compile(r"\A\s*(?:[\w.-]+(?:/|, ?)\d[^,:\s]*(?:, ?[^,:\s]+, ?\w+)?: ?(?:added|built|installed)\b[^\n]*(?:\n+|\Z))+\Z"),
    ),
    (
        ("lspci", "-nnk"),
        re.compile(r"\A\s*[0-9a-f:.]{7,12} [^\n]+\[[0-9a-f]{4}\]: [^\n]+\[[0-9a-f]{4}:[0-9a-f]{4}\][\s\S]*Kernel driver in use:"),
    ),
    (("lsmod",), re.compile(r"\A\s*Module +Size +Used by\b")),
    (("modinfo", "nvidia"), re.compile(r"\A\s*filename: +\S*nvidia\S*\.ko[\s\S]*^version: ", re.MULTILINE)),
    (("mokutil", "--sb-state"), re.compile(r"\A\s*SecureBoot (?:enabled|disabled)\s*(?:\n[^\n]{0,80}\s*)?\Z")),
    (("dpkg", "-l"), re.compile(r"\A[\s\S]{0,400}^\|\|/ Name ", re.MULTILINE)),
    (("ldconfig", "-p"), re.compile(r"\A\s*\d+ libs found in cache")),
    (("df", "-h"), re.compile(r"\A\s*Filesystem +Size +Used +Avail +Use% +Mounted on\b")),
)
"""How the output of a command looks that fills a file by itself."""


def answered(text: str) -> Mapping[tuple[str, ...], str]:
    """Return the commands that a handed text answers: those of a session, or the one whose output it is."""
    if len(text) > MOST:
        return {}
    return session(text).commands or {argv: text for argv, looks in _KNOWN if looks.search(text)}


def _steps(text: str) -> Iterator[tuple[str, str, bool]]:
    """Yield each typed line with what follows up to the next one, and whether there is a next one: then that is all of it."""
    if len(text) > MOST:
        return
    typed = list(_PROMPT.finditer(text))
    for at, found in enumerate(typed):
        if found["host"] and _CONTAINER.fullmatch(found["host"]):
            continue
        end = typed[at + 1].start() if at + 1 < len(typed) else len(text)
        yield found["line"], text[found.end() + 1 : end], at + 1 < len(typed)


def _words(line: str) -> tuple[str, ...]:
    """Return the first command of a line without `sudo` and without what its output was sent through."""
    end = _ENDS.search(line)
    try:
        words = shlex.split(line[: end.start()] if end else line, comments=True)
    except ValueError:
        return ()
    while words and (words[0] in ("sudo", "env", "time") or re.fullmatch(r"\w+=\S*", words[0])):
        del words[0]
    return tuple(words)


def _plain(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words under which a list of packages is looked for: what it was cut down to does not matter."""
    return words[:2] if words[:2] in (("dpkg", "-l"), ("rpm", "-qa")) else words
