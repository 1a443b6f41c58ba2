"""The command: isolate, read the command line, hand over; Textual is imported only when a screen is wanted."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

from steps.errors import BringupError, InputError

if TYPE_CHECKING:
    from steps.headless.console import Asked, Console
    from steps.language import Language
    from steps.settings import Config

INTERRUPTED, BROKEN_PIPE = 130, 141
_BEFORE_GARBAGE = 50_000
"""How many objects are made before the youngest are looked through."""


def main() -> None:
    """Run the command and exit with its code; starts itself again isolated when it was not."""
    if not sys.flags.isolated:
        from steps import resources

        # PYTHONPATH and the current folder must not decide which `rich` or `steps` is imported.
        command = resources.self_command()
        os.execv(command[0], [*command, *sys.argv[1:]])
    # What is loaded at the start stays: looking for garbage among it again and again costs a tenth of the start.
    gc.set_threshold(_BEFORE_GARBAGE)
    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        # A locale without × or 汉字 must cost a character, never the answer; and who follows a run through a pipe reads each line at once.
        stream.reconfigure(errors="replace", line_buffering=True)  # type: ignore[union-attr]  # both are text files unless replaced
    sys.exit(_guarded(sys.argv[1:], os.environ))


def _open_streams() -> None:
    """Put the empty file where a caller closed a standard stream; a file of ours would get its number otherwise."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - it stays open as long as the program


def _guarded(argv: list[str], environ: Mapping[str, str]) -> int:
    """Return the exit code; every error becomes one clear line on stderr."""
    from tui import options

    asked = options.parsed(argv, environ)
    language: Language = "en"
    try:
        language = _language(asked, environ)  # that of what is said about a config file which is wrong
        if preferred := _preferred(environ):
            language, asked = _language(asked, environ, preferred.lang), preferred.under(asked)
        code = run(asked, environ, language)
        _print("", end="", flush=True)
        return code
    except BringupError as error:
        from steps.text import say_error

        _say(f"bringup: {say_error(language, error.code, error.params)}", sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return BROKEN_PIPE
    except Exception as error:  # noqa: BLE001 - the last door: a bug of ours is said as one, without a traceback on the screen
        from steps.text import say_error

        if asked.get("verbose"):
            import traceback

            traceback.print_exc()
        detail = f"{type(error).__name__}: {error}"
        _print(f"bringup: {say_error(language, 'bug', {'detail': detail})}", sys.stderr)
        return 1


def _drop_output() -> None:
    """Let what nobody takes go nowhere; closing stdout at exit must not complain a second time."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _preferred(environ: Mapping[str, str]) -> Config | None:
    """Return what the config files say, `None` where there are none; raises for one that is wrong."""
    from steps.language import config_files

    if not any(os.path.exists(path) for path in config_files(environ)):
        return None
    from steps import settings
    from steps.host.local import LocalHost

    return settings.config(LocalHost(), environ)


def _language(asked: Mapping[str, Any], environ: Mapping[str, str], preferred: str | None = None) -> Language:
    """Return the language of this call; JSON is English unless a language was asked for."""
    from steps.language import spoken

    if asked.get("json") and not asked.get("lang"):
        return "en"
    return spoken(asked.get("lang"), environ, preferred)


def run(asked: Mapping[str, Any], environ: Mapping[str, str], language: Language) -> int:
    """Hand over to the verb and return its exit code."""
    if asked.get("version"):
        from importlib.metadata import version

        print(f"bringup {version('bringup')}")
        return 0
    verb = asked.get("verb") or "wizard"
    if verb == "wizard":
        if asked.get("json"):
            raise InputError("no-json-wizard")
        return _wizard(asked, environ, language)
    console = _console(asked, language)
    if verb in ("detect", "capture", "knowledge", "doctor"):
        return _look(verb, asked, environ, console)
    from steps.headless import choices, runs

    match verb:
        case "report":
            return _report(asked, environ, console)
        case "check":
            return choices.check(console, environ)
        case "recommend":
            return choices.recommend(console, environ, tuple(asked["want"]))
        case "plan":
            return choices.plan(console, environ, asked["format"])
        case "runs":
            return runs.runs(console)
        case "verify":
            return _verify(asked, environ, console)
        case _:
            from tui import running

            return running.apply(asked, environ, console) if verb == "apply" else running.again(verb, asked, environ, console)


def _look(verb: str, asked: Mapping[str, Any], environ: Mapping[str, str], console: Console) -> int:
    """Run a verb that only looks; it loads nothing that chooses or changes."""
    if verb == "knowledge":
        return _knowledge(asked, environ, console)
    if verb == "doctor":
        return _doctor(asked, environ, console)
    from steps.headless import facts

    return facts.capture(console, asked["file"]) if verb == "capture" else facts.detect(console)


def _doctor(asked: Mapping[str, Any], environ: Mapping[str, str], console: Console) -> int:
    """Name what is broken; repair it where that was asked for, or look whether a repair was enough."""
    if asked.get("fix"):
        from tui import running

        return running.repair(asked, environ, console)
    import shlex

    from steps.headless.doctor import doctor, gone

    if asked.get("run"):
        from steps.engine import client

        return doctor(console, (), client.find(asked["run"]))
    if asked.get("gone"):
        return gone(console, asked["gone"], asked.get("since"), tuple(shlex.split(asked.get("proof") or "")))
    return doctor(console, tuple(asked["log"]))


def _knowledge(asked: Mapping[str, Any], environ: Mapping[str, str], console: Console) -> int:
    """Show or refresh what is known; a person on a terminal signs the changes off."""
    from steps.headless import knowledge

    if not asked.get("update"):
        return knowledge.knowledge(console, environ)
    on_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    return knowledge.update(console, environ, _agreed if on_terminal else None)


def _agreed(question: str) -> bool:
    """Ask on the terminal and return whether the answer was yes."""
    from tui import dialogue

    return dialogue.agreed(question, "y", "yes")


def _verify(asked: Mapping[str, Any], environ: Mapping[str, str], console: Console) -> int:
    """Prove the result; or what a run asks before it changes the driver, and before it says "reboot"."""
    from steps.headless import runs

    if asked.get("neighbours"):
        from steps.headless.neighbours import make_way

        return make_way(console, _line)
    if asked.get("next_boot"):
        return runs.next_boot(console)
    if asked.get("nodes"):
        from steps.headless.nodes import look_between

        return look_between(console, environ, asked["nodes"])
    return runs.verify(console, environ, of_run=bool(asked.get("of_run")), burn=int(asked.get("burn") or 0))


def _line(question: str) -> str:
    """Return what a person types; an end of input is a stop."""
    try:
        return input(question)
    except EOFError:
        return "stop"


def _report(asked: Mapping[str, Any], environ: Mapping[str, str], console: Console) -> int:
    """Write the report, or the card for the blue screen of the next boot."""
    if asked.get("mok"):
        from steps.headless.report import mok

        return mok(console)
    from steps.headless.report import report

    return report(console, environ, os.path.abspath(asked["html"]) if asked.get("html") else None)


def _asked(asked: Mapping[str, Any], language: Language) -> Asked:
    """Return the common options as a value; file names absolute, since the run has another folder."""
    from steps.headless.console import Asked

    def absolute(name: str) -> str | None:
        return os.path.abspath(asked[name]) if asked.get(name) else None

    name = asked.get("profile") or ""
    return Asked(
        machine=absolute("machine"),
        root=absolute("root"),
        # A bare name without a file may be a set of packages.
        profile=absolute("profile") if "/" in name or os.path.exists(name) else name or None,
        json=bool(asked.get("json")),
        language=language,
        yes=bool(asked.get("yes")),
        verbose=bool(asked.get("verbose")),
        offline=bool(asked.get("offline")),
    )


def _console(asked: Mapping[str, Any], language: Language) -> Console:
    """Return where a verb writes."""
    from steps.headless.console import Console

    if asked.get("json"):
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # JSON is UTF-8 in every locale
    return Console(_asked(asked, language), _say, lambda line: _say(line, sys.stderr), _print)


def _say(line: str, stream: TextIO | None = None) -> None:
    """Write a line, on a terminal in rows that end between words; raises as `_print` does."""
    to, rows = stream or sys.stdout, [line]
    if to.isatty():
        from tui.folding import folded

        rows = folded(line, os.get_terminal_size(to.fileno()).columns)
    for row in rows:
        _print(row, stream)


def _print(line: str, stream: TextIO | None = None, *, end: str = "\n", flush: bool = False) -> None:
    """Write a line without the control characters that a capture or a device name could smuggle into a terminal.

    Raises `BringupError` (`output-lost`) when there is no room for it.
    """
    shown = "".join(char if char.isprintable() or char in "\n\t" else "�" for char in line)
    try:
        print(shown, file=stream or sys.stdout, end=end, flush=flush)
    except BrokenPipeError:
        raise
    except OSError as error:
        if stream is not None:  # there is no third place to say it
            return
        _drop_output()
        raise BringupError("output-lost", reason=error.strerror or type(error).__name__) from error


def _wizard(asked: Mapping[str, Any], environ: Mapping[str, str], language: Language) -> int:
    """Open the wizard: as screens where the terminal can, else as lines."""
    from tui import terminal

    if not asked.get("plain") and terminal.shows_screens(environ):
        from tui.app import wizard

        return wizard(asked, environ, language)
    from tui import running

    return running.plain_wizard(_console(asked, language), environ)


if __name__ == "__main__":
    main()
