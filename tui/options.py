"""The command line: which verbs there are, and what each takes; its words are fetched only when they are shown."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from steps.language import Language, spoken

VERBS = (
    "wizard", "detect", "check", "recommend", "plan", "apply", "attach", "resume", "undo", "runs", "verify", "doctor", "capture",
    "knowledge", "report",
)  # fmt: skip
_SLIPS = {
    "missing": r"the following arguments are required: (?P<what>.+)",
    "unknown": r"unrecognized arguments: (?P<what>.+)",
    "empty": r"argument (?P<what>.+): empty",
    "no-value": r"argument (?P<what>.+): expected (?:one|at least one) argument",
    "not-a-choice": r"argument (?P<what>.+): invalid choice: (?P<given>'.*') \(choose from (?P<choices>.+)\)",
}
"""What argparse says of wrong usage, for the words in both languages; anything else is shown as it says it."""


_NARROW = 78
"""How wide a usage line is where nobody asked for help."""


class _Parser(argparse.ArgumentParser):
    """Speaks the language of the call."""

    language: Language = "en"
    width: int | None = _NARROW

    def _get_formatter(self) -> argparse.HelpFormatter:
        """Return what lays out the help; a width that is given spares each option of each verb a question to the terminal."""
        return self.formatter_class(prog=self.prog, width=self.width)  # type: ignore[call-arg]  # HelpFormatter takes it

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the command line, without control characters, and end with 2."""
        language = self.language
        said = next((_said(language, key, found.groupdict()) for key, found in _matches(message)), message)
        lines = (f"{_say(language, 'usage.usage')}{self.format_usage().partition(': ')[2].rstrip()}", f"{self.prog}: {said}")
        self.exit(2, "".join(f"{_clean(line)}\n" for line in lines))

    def format_help(self) -> str:
        """Return the help with its headings in the language of the call."""
        text = super().format_help()
        if self.language == "en":
            return text
        headings = (("usage: ", "usage.usage"), ("\noptions:\n", "usage.options"), ("\npositional arguments:\n", "usage.arguments"))
        for english, key in headings:
            said = _say(self.language, key)
            text = text.replace(english, said if english == "usage: " else f"\n{said}\n", 1)
        return text


def _matches(message: str) -> list[tuple[str, re.Match[str]]]:
    """Return the kinds of slip that a message of argparse tells of; at most one."""
    found = ((key, re.fullmatch(pattern, message, re.DOTALL)) for key, pattern in _SLIPS.items())
    return [(key, match) for key, match in found if match is not None]


def _said(language: Language, key: str, params: dict[str, str]) -> str:
    """Return the words for a slip, with the nearest choice where one looks like what was typed."""
    if key == "not-a-choice":
        choices = [choice.strip().strip("'") for choice in params["choices"].split(",")]
        if near := difflib.get_close_matches(params["given"].strip("'"), choices, n=1):
            return _say(language, "usage.not-a-choice-near", near=near[0], **params)
    return _say(language, f"usage.{key}", **params)


def _clean(line: str) -> str:
    """Return a line that does nothing to a terminal."""
    return "".join(char if char.isprintable() or char == "\n" else "�" for char in line)


def _say(language: Language, key: str, **params: str) -> str:
    """Return the words `cli.<key>`."""
    from steps.model.base import phrase
    from steps.text import say

    return say(language, phrase(f"cli.{key}", **params))


def _language(argv: list[str], environ: Mapping[str, str]) -> Language:
    """Return the language of a command line that is not parsed yet; a config file has no word in it."""
    asked = next((word.removeprefix("--lang=") for word in argv if word.startswith("--lang=")), None)
    if asked is None and "--lang" in argv[:-1]:
        asked = argv[argv.index("--lang") + 1]
    return spoken(asked, environ, None)


def _name(typed: str) -> str:
    """Return the name of a file or a folder; an empty one (an unset variable, mostly) would silently mean another machine."""
    if not typed:
        raise argparse.ArgumentTypeError("empty")
    return typed


_BURN = 120
"""Seconds of a burn that is asked for without a number: long enough for the temperature to settle."""


def _names(typed: str) -> tuple[str, ...]:
    """Return the names of machines, at least two; one that begins with a dash would be an option of ssh."""
    names = tuple(name.strip() for name in typed.split(",") if name.strip())
    if len(names) < 2 or len(set(names)) < len(names) or any(name.startswith("-") for name in names):
        raise argparse.ArgumentTypeError("HOST,HOST")
    return names


def _seconds(typed: str) -> int:
    """Return a number of seconds, at most an hour."""
    if not typed.isdigit() or not 0 < int(typed) <= 3600:
        raise argparse.ArgumentTypeError("1-3600")
    return int(typed)


def parser(language: Language = "en", *, helpful: bool = True) -> argparse.ArgumentParser:
    """Return the parser, with the texts of its help only where they are wanted; common options stand before or after the verb."""

    def about(key: str) -> str | None:
        return _say(language, key).replace("%", "%%") if helpful else None

    _Parser.language = language
    _Parser.width = None if helpful else _NARROW
    common = _common(about)
    top = _Parser(prog="bringup", parents=[common], description=about("usage.about"), add_help=False)
    verbs = top.add_subparsers(dest="verb", metavar="VERB", prog=top.prog)
    added = {
        name: verbs.add_parser(name, parents=[common], help=about(f"verb.{name}"), description=about(f"verb.{name}"), add_help=False)
        for name in VERBS
    }
    for one in (top, *added.values()):
        one.add_argument("-h", "--help", action="help", help=about("option.help"))
    top.add_argument("--version", action="store_true", help=about("option.version"))
    added["recommend"].add_argument("--want", action="append", default=[], metavar="SPEC", help=about("option.want"))
    formats = ("text", "json", "sh", "ansible", "cloud-init", "dockerfile")
    added["plan"].add_argument("--format", default="text", choices=formats, metavar="FORMAT", help=about("option.format"))
    added["apply"].add_argument("--detach", action="store_true", help=about("option.detach"))
    added["apply"].add_argument("--without-root", action="store_true", help=about("option.without-root"))
    for name in ("attach", "resume", "undo"):
        added[name].add_argument("run", nargs="?", type=_name, metavar="RUN", help=about("option.run"))
    added["verify"].add_argument("--of-run", action="store_true", help=argparse.SUPPRESS)
    added["verify"].add_argument("--nodes", type=_names, metavar="HOST,HOST", help=about("option.nodes"))
    added["verify"].add_argument("--burn", type=_seconds, nargs="?", const=_BURN, metavar="SECONDS", help=about("option.burn"))
    added["verify"].add_argument("--neighbours", action="store_true", help=argparse.SUPPRESS)
    added["verify"].add_argument("--next-boot", action="store_true", help=argparse.SUPPRESS)
    added["capture"].add_argument("file", type=_name, metavar="FILE")
    added["knowledge"].add_argument("update", nargs="?", choices=("update",), help=about("option.update"))
    added["doctor"].add_argument("--log", action="append", default=[], metavar="FILE", type=_name, help=about("option.log"))
    added["doctor"].add_argument("--run", metavar="RUN", type=_name, help=about("option.doctor-run"))
    added["doctor"].add_argument("--fix", action="store_true", help=about("option.fix"))
    added["doctor"].add_argument("--gone", metavar="ID", type=_name, help=argparse.SUPPRESS)
    added["doctor"].add_argument("--since", metavar="SECONDS", type=float, help=argparse.SUPPRESS)
    added["doctor"].add_argument("--proof", metavar="COMMAND", type=_name, help=argparse.SUPPRESS)
    added["report"].add_argument("--mok", action="store_true", help=about("option.mok"))
    added["report"].add_argument("--html", type=_name, metavar="FILE", help=about("option.html"))
    return top


def _common(about: Callable[[str], str | None]) -> _Parser:
    """Return the options of every verb."""
    common = _Parser(add_help=False, argument_default=argparse.SUPPRESS)
    # A group of its own: it stands below the options of the verb itself.
    group = common.add_argument_group(about("usage.common") or "common")
    group.add_argument("--machine", type=_name, metavar="FILE", help=about("option.machine"))
    group.add_argument("--root", type=_name, metavar="DIR", help=about("option.root"))
    group.add_argument("--profile", type=_name, metavar="FILE", help=about("option.profile"))
    group.add_argument("--json", action="store_true", help=about("option.json"))
    group.add_argument("--plain", action="store_true", help=about("option.plain"))
    group.add_argument("--lang", choices=("en", "zh_CN"), help=about("option.lang"))
    group.add_argument("--no-color", action="store_true", help=about("option.no-color"))
    group.add_argument("--low-bandwidth", action="store_true", help=about("option.low-bandwidth"))
    group.add_argument("--offline", action="store_true", help=about("option.offline"))
    group.add_argument("-y", "--yes", action="store_true", help=about("option.yes"))
    group.add_argument("-v", "--verbose", action="store_true", help=about("option.verbose"))
    return common


def parsed(argv: list[str], environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the options by name; what was not said is absent. Exits with 2 for wrong usage."""
    wanted = "-h" in argv or any(len(word) > 2 and "--help".startswith(word) for word in argv)
    return vars(parser(_language(argv, environ), helpful=wanted).parse_args(argv))
