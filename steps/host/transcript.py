"""The commands that a person typed into a terminal, with what they printed, out of a pasted session."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from steps.host.prompts import FACTS, PROMPT

MOST = 1 << 20
"""A longer text is a log, not what somebody pasted."""
_PROMPT = re.compile(rf"^(?P<before>{PROMPT})[ ]*(?P<line>\S[^\n]*)$", re.MULTILINE)
_CONTAINER = re.compile(r"[0-9a-f]{12}")
"""A host name that docker made."""
_ENDS = re.compile(r"\s(?:\||&&|\|\||;|2?>)|;")
_FILES = re.compile(r"/(?:etc|proc|sys|usr/lib|lib|(?:var/)?run/cdi)/[\w./:@+-]+")
"""Files that tell facts by themselves; logs are read as what they are."""
_SHOWN_FOLDERS = re.compile(r"/dev|(?:/usr)?/lib/modules|/run/nvidia|/usr/bin/nvidia-(?:un)?install")
_VISIBLE = ("$CUDA_VISIBLE_DEVICES", "${CUDA_VISIBLE_DEVICES}", "$LD_LIBRARY_PATH", "${LD_LIBRARY_PATH}")
_LOCKED = re.compile(r"^max locked memory[^\n]*\)[ \t]+(\S+)$", re.MULTILINE)
_ASKED = (
    ("dpkg", "-l"), ("dpkg", "--list"), ("dpkg-query", "-W"), ("dpkg-query", "-l"), ("apt", "list"), ("apt", "policy"),
    ("apt-cache", "policy"), ("dnf", "list"), ("yum", "list"), ("dnf", "info"), ("yum", "info"), ("zypper", "se"), ("zypper", "search"),
    ("pacman", "-Q"), ("pacman", "-Qs"), ("pacman", "-Qi"), ("systemctl", "status"), ("systemctl", "is-active"),
    ("ulimit", "-l"),
)  # fmt: skip
"""Commands of which only these tell facts."""


class Session(NamedTuple):
    """What a pasted session tells: commands with their output, and files that were printed."""

    commands: Mapping[tuple[str, ...], str]
    files: Mapping[str, str]


_NVIDIA = re.compile(r"\bgrep\b[^|]*\bnvidia\b|-d *10de:", re.IGNORECASE)
_BUS = ("lspci", "-nn", "-d", "10de:")
"""The question for NVIDIA's devices, however a person asked it: only of this one an empty answer tells something."""


_ALL_QUOTED = re.compile(r"(?:>[^\n]*\n|[ \t]*\n)*(?:>[^\n]*)?")
_QUOTED = re.compile(r"^> ?", re.MULTILINE)
"""How a mail or a forum quotes a whole text."""


def session(text: str) -> Session:
    """Return the questions of a session that tell facts, each with its first answer; what ran inside a container is left out."""
    commands: dict[tuple[str, ...], str] = {}
    files: dict[str, str] = {}
    text = _QUOTED.sub("", text) if len(text) <= MOST and _ALL_QUOTED.fullmatch(text) else text
    for path, output in _printed(text):
        files.setdefault(path, output)
    listed: list[tuple[str, ...]] = []
    for line, output, ended in (*_sections(text), *_steps(text)):
        words = _words(line)
        every = words[:1] == ("lspci",) and _asks_for_all(line)
        if every or (words[:1] == ("lspci",) and _NVIDIA.search(line)):
            if every and ended and not output.strip():
                # Asked again, the bus has no card any more: what it listed earlier is past.
                for argv in listed:
                    commands.pop(argv, None)
                commands.setdefault(_BUS, "")
            elif output.strip() and commands.get(_BUS) == "":
                commands.pop(_BUS)
            listed.append(_plain(words))
        if not output.strip() or not words:
            continue
        if words[0] == "cat" and len(words) == 2 and _FILES.fullmatch(words[1]):
            if not output.startswith("cat: "):
                files.setdefault(words[1], output)
        else:
            _answer(commands, words, output)
    return Session(commands, files)


_OF_MAKER = re.compile(r"(?:-d)?10de:\*?(?::(?:03\w*|\*)?)?", re.IGNORECASE)
"""How lspci is asked for the devices of NVIDIA, or for its display controllers."""


def _asks_for_all(line: str) -> bool:
    """Return whether a line asks the bus for every device of NVIDIA's: what was asked of them besides may well be empty."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|")
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return False
    chosen = any(_OF_MAKER.fullmatch(word) for word in words)
    if "|" not in words:
        return chosen
    filtered = words[words.index("|") + 1 :]
    patterns = [word for word in filtered[1:] if not word.startswith("-") and not word.isdigit()]
    if chosen or filtered[:1] not in (["grep"], ["egrep"]) or len(patterns) != 1 or "-v" in filtered:
        return False
    # lspci writes the maker in capitals.
    alike = any(re.fullmatch(r"-\w*i\w*|--ignore-case", word) for word in filtered)
    return "NVIDIA" in re.split(r"\\?\|", patterns[0].upper() if alike else patterns[0])


def _answer(commands: dict[tuple[str, ...], str], words: tuple[str, ...], output: str) -> None:
    """Enter what a command printed under the words by which it is looked for, where it tells a fact."""
    if named := _variable(words):
        value = output.strip().partition("\n")[0]
        commands[_ENV] = f"{commands.get(_ENV, '')}{named}={value}\n"
    elif words == ("ulimit", "-a") and (limit := _LOCKED.search(output)):
        commands.setdefault(("ulimit", "-l"), f"{limit[1]}\n")
    elif words[0] in FACTS or words[:2] in _ASKED or _lists(words) or _names_tool(words):
        commands.setdefault(_plain(words), output)


_LINE = r"^_{20,}[ \t]*\n\s*"
_SECTION = re.compile(rf"{_LINE}(?P<line>/(?:usr/)?s?bin/[^\n]+)\n(?P<output>(?:(?!_{{20}})[^\n]*(?:\n|\Z))*)", re.MULTILINE)
_SHOWN = re.compile(
    r"^\*\*\* (?P<path>/[^\s:]+)[ \t]*\n(?:\*\*\* ls: [^\n]*\n)?(?P<output>(?:(?!_{20}|\*\*\* )[^\n]+(?:\n|\Z))+)", re.MULTILINE
)
"""How nvidia-bug-report.sh writes the commands that it ran, and the files that it read."""


def _sections(text: str) -> Iterator[tuple[str, str, bool]]:
    """Yield the commands of a report of NVIDIA's script as if they had been typed."""
    for found in _SECTION.finditer(text if len(text) <= MOST else ""):
        yield found["line"], found["output"].strip("\n") + "\n", True


def _printed(text: str) -> Iterator[tuple[str, str]]:
    """Yield the files of such a report that tell facts by themselves."""
    for found in _SHOWN.finditer(text if len(text) <= MOST else ""):
        path = posixpath.normpath(found["path"])
        if _FILES.fullmatch(path):
            yield path, found["output"]


_ENV = ("env",)


def _variable(words: tuple[str, ...]) -> str | None:
    """Return the name of the one variable whose value was asked for, or `None`."""
    asked = words[0] == "printenv" or (words[0] == "echo" and words[-1] in _VISIBLE)
    return words[1].strip("${}") if asked and len(words) == 2 else None


def _lists(words: tuple[str, ...]) -> bool:
    """Return whether a command shows folders or settings that tell facts."""
    if words[0] in ("ls", "find"):
        return any(_SHOWN_FOLDERS.match(word) for word in words)
    return words[0] in ("cat", "grep", "egrep") and any("/modprobe.d" in word or "/cdi/" in word for word in words)


_WHERE = frozenset(("readlink", "realpath", "type", "command", "whereis", "file", "ls"))


def _names_tool(words: tuple[str, ...]) -> bool:
    """Return whether a command tells which nvidia-smi is found; `which` itself always does."""
    return words[0] in _WHERE and any(word.strip("`'\"$()").endswith("nvidia-smi") for word in words)


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
    (("nvidia-smi", "-q"), re.compile(r"\A\s*=+NVSMI LOG=+\s")),
    (("nvidia-smi",), re.compile(r"\A\s*(?:[A-Z][a-z]{2} [^\n]{10,40}\n)?\+-{20,}\+[ \t]*\n\| NVIDIA-SMI \d")),
    (("nvidia-smi", "topo", "-m"), re.compile(r"\A\s*(?:\x1b\[4m)?GPU0[ \t]+[^\n]*\bAffinity\b[^\n]*\nGPU0[ \t]+X\b")),
    (
        ("lspci", "-vvv"),
        re.compile(r"\A\s*[0-9a-f:.]{7,12} [A-Z][^\n]+: [^\n]+\n\s+(?:Subsystem|Control|Device\w*|Flags): [\s\S]*\n[ \t]+Capabilities: "),
    ),
    (("df", "-h"), re.compile(r"\A\s*Filesystem +Size +Used +Avail +Use% +Mounted on\b")),
)
"""How the output of a command looks that fills a file by itself."""


def answered(text: str) -> Mapping[tuple[str, ...], str]:
    """Return the commands that a handed text answers: those of a session, or the one whose output it is."""
    if len(text) > MOST:
        return {}
    return session(text).commands or whole(text)


def whole(text: str) -> Mapping[tuple[str, ...], str]:
    """Return the command whose output fills a text by itself, with that text; nothing where it is none that is known."""
    return {argv: text for argv, looks in _KNOWN if looks.search(text)} if len(text) <= MOST else {}


_BARE = re.compile(r"^[(\[]?[\w.-]+@[\w.-]+[^$#%>\n]{0,60}[$#][ \t]*$", re.MULTILINE)
"""A prompt behind which nothing was typed: mostly the end of what was copied."""


def _steps(text: str) -> Iterator[tuple[str, str, bool]]:
    """Yield each typed line with what follows up to the next one, and whether another prompt follows: then that is all of it."""
    if len(text) > MOST:
        return
    typed = list(_PROMPT.finditer(text))
    for at, found in enumerate(typed):
        if found["host"] and _CONTAINER.fullmatch(found["host"]):
            continue
        end = typed[at + 1].start() if at + 1 < len(typed) else len(text)
        output = text[found.end() + 1 : end]
        bare = _BARE.search(output)
        yield found["line"], output[: bare.start()] if bare else output, bare is not None or at + 1 < len(typed)


def _words(line: str) -> tuple[str, ...]:
    """Return the first command of a line without `sudo` and without what its output was sent through."""
    end = _ENDS.search(line)
    try:
        words = shlex.split(line[: end.start()] if end else line, comments=True)
    except ValueError:
        return ()
    return plain(tuple(words))


def plain(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command without what it was run by, and without the system's folder of its program."""
    left = list(words)
    while left and (
        left[0] in ("sudo", "time") or (left[0] == "env" and len(left) > 1 and "=" in left[1]) or re.fullmatch(r"\w+=\S*", left[0])
    ):
        del left[0]
        while left and words[0] == "sudo" and re.fullmatch(r"-[EHnS]+|--preserve-env", left[0]):
            del left[0]
    if left and (found := re.fullmatch(r"(?:/usr)?/s?bin/([\w.+-]+)", left[0])):
        left[0] = found[1]
    return tuple(left)


def _plain(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words under which a list of packages is looked for: what it was cut down to does not matter."""
    return words[:2] if words[:2] in (("dpkg", "-l"), ("rpm", "-qa")) else words
