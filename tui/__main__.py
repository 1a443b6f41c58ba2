"""The command: isolate, read the command line, hand over; Textual is imported only when a screen is wanted."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

from steps.errors import BringupError, Cancelled, InputError

if TYPE_CHECKING:
    from steps.engine.client import RunHandle
    from steps.headless.console import Asked, Console
    from steps.language import Language

CANCELLED, INTERRUPTED = 5, 130


def main() -> None:
    """Run the command and exit with its code; starts itself again isolated when it was not."""
    if not sys.flags.isolated:
        from steps import resources

        # PYTHONPATH and the current folder must not decide which `rich` or `steps` is imported.
        command = resources.self_command()
        os.execv(command[0], [*command, *sys.argv[1:]])
    for stream in (sys.stdout, sys.stderr):
        # A locale without × or 汉字 must cost a character, never the answer.
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # both are text files unless replaced
    sys.exit(_guarded(sys.argv[1:], os.environ))


def _guarded(argv: list[str], environ: Mapping[str, str]) -> int:
    """Return the exit code; every error becomes one clear line on stderr."""
    from tui import options

    asked = options.parsed(argv)
    language: Language = "en"
    try:
        language = _language(asked, environ)
        return run(asked, environ, language)
    except BringupError as error:
        from steps.text import say_error

        print(f"bringup: {say_error(language, error.code, error.params)}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away; closing stdout again at exit must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # noqa: BLE001 - the last door: a bug of ours is said as one, without a traceback on the screen
        from steps.text import say_error

        if asked.get("verbose"):
            traceback.print_exc()
        detail = f"{type(error).__name__}: {error}"
        print(f"bringup: {say_error(language, 'bug', {'detail': detail})}", file=sys.stderr)
        return 1


def _language(asked: Mapping[str, Any], environ: Mapping[str, str]) -> Language:
    """Return the language of this call; JSON is English unless a language was asked for."""
    if asked.get("json") and not asked.get("lang"):
        return "en"
    from steps.language import config_files, spoken

    preferred = None
    if any(os.path.exists(path) for path in config_files(environ)):
        from steps import settings
        from steps.host.local import LocalHost

        preferred = settings.config(LocalHost(), environ).lang
    return spoken(asked.get("lang"), environ, preferred)


def run(asked: Mapping[str, Any], environ: Mapping[str, str], language: Language) -> int:
    """Hand over to the verb and return its exit code."""
    if asked.get("version"):
        from importlib.metadata import version

        print(f"bringup {version('bringup')}")
        return 0
    verb = asked.get("verb") or "wizard"
    if verb in ("doctor", "report"):
        raise InputError("not-yet", verb=verb)
    if verb == "wizard":
        return _wizard(asked, environ, language)
    console = _console(asked, language)
    if verb == "knowledge":
        return _knowledge(asked, environ, console)
    if verb in ("detect", "capture"):
        return _look(verb, asked, console)
    from steps.headless import choices, runs

    match verb:
        case "check":
            return choices.check(console, environ)
        case "recommend":
            return choices.recommend(console, environ, tuple(asked["want"]))
        case "plan":
            return choices.plan(console, environ, asked["format"])
        case "runs":
            return runs.runs(console)
        case "verify":
            return runs.verify(console, environ, of_run=bool(asked.get("of_run")))
        case "apply":
            return _apply(asked, environ, console)
        case _:
            return _again(verb, asked, console)


def _look(verb: str, asked: Mapping[str, Any], console: Console) -> int:
    """Run a verb that only looks; it loads nothing that chooses or changes."""
    from steps.headless import facts

    return facts.capture(console, asked["file"]) if verb == "capture" else facts.detect(console)


def _knowledge(asked: Mapping[str, Any], environ: Mapping[str, str], console: Console) -> int:
    """Show or refresh what is known; a person on a terminal signs the changes off."""
    from steps.headless import knowledge

    if not asked.get("update"):
        return knowledge.knowledge(console, environ)
    on_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    confirm = (lambda question: input(question).strip().lower() in ("y", "yes")) if on_terminal else None
    return knowledge.update(console, environ, confirm)


def _asked(asked: Mapping[str, Any], language: Language) -> Asked:
    """Return the common options as a value; file names absolute, since the run has another folder."""
    from steps.headless.console import Asked

    def absolute(name: str) -> str | None:
        return os.path.abspath(asked[name]) if asked.get(name) else None

    return Asked(
        machine=absolute("machine"),
        root=absolute("root"),
        profile=absolute("profile"),
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
    return Console(_asked(asked, language), _print, lambda line: _print(line, sys.stderr))


def _print(line: str, stream: TextIO | None = None) -> None:
    """Write a line without the control characters that a capture or a device name could smuggle into a terminal."""
    print("".join(char if char.isprintable() or char in "\n\t" else "�" for char in line), file=stream or sys.stdout)


def _apply(asked: Mapping[str, Any], environ: Mapping[str, str], console: Console) -> int:
    """Start the plan and follow it to its end."""
    from steps import documents, lines
    from steps.headless import runs
    from steps.model.base import phrase
    from steps.text import say
    from tui import privilege

    language = console.asked.language
    on_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if not console.asked.yes and (console.asked.json or not on_terminal):
        raise InputError("needs-yes")
    plan, found = runs.prepare(console, environ, root_possible=privilege.can_be_root(), without_root=bool(asked.get("without_root")))
    if not plan.actions:
        if console.asked.json:
            console.document(documents.document("apply", {"run": None, "state": "done", "exit": 0, "actions": [], "findings": []}))
        else:
            console.out(say(language, phrase("cli.nothing-to-do")))
        return 0
    if not console.asked.yes:
        console.lines(lines.plan(plan, found, language))
        if input(say(language, phrase("cli.plain.start"))).strip().lower() not in ("y", "yes"):
            raise Cancelled("cancelled")
    handle = runs.start(plan, privilege.sudo())
    if asked.get("detach"):
        if console.asked.json:
            console.document(documents.run(handle.id, handle.state(), (), language, "apply"))
        else:
            console.out(say(language, phrase("cli.detached", run=handle.id)))
        return 0
    return _follow(handle, console, "apply")


def _again(verb: str, asked: Mapping[str, Any], console: Console) -> int:
    """Attach to, resume or undo a run."""
    from steps.engine import client
    from tui import privilege

    handle = client.find(asked.get("run"))
    if verb == "undo" and not console.asked.yes and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InputError("needs-yes")
    if verb == "resume":
        handle.resume(sudo=privilege.sudo())
    elif verb == "undo":
        if not console.asked.yes and not _confirmed_undo(handle, console):
            raise Cancelled("cancelled")
        handle.undo(sudo=privilege.sudo())
    if _screens(asked) and not console.asked.json:
        from tui.app import watch

        return watch(handle, console.asked.language, no_color=bool(asked.get("no_color")))
    return _follow(handle, console, verb)


def _confirmed_undo(handle: RunHandle, console: Console) -> bool:
    """Ask for the typed word; nothing that cannot be taken back starts on Enter."""
    from steps.model.base import phrase
    from steps.text import say

    prompt = say(console.asked.language, phrase("cli.plain.undo", count=len(handle.plan.actions), run=handle.id))
    return input(prompt).strip() == "undo"


def _follow(handle: RunHandle, console: Console, verb: str) -> int:
    """Follow the run as lines and return its exit code; with --json one document at the end."""
    from steps import documents
    from tui.dialogue import ask
    from tui.follow import follow

    asked = console.asked
    person = ask if sys.stdin.isatty() and sys.stdout.isatty() and not asked.json else None
    code = follow(handle, asked.language, console.err if asked.json else console.out, json=asked.json, verbose=asked.verbose, ask=person)
    if asked.json:
        console.document(documents.run(handle.id, handle.state(), (), asked.language, verb))
    return code


def _screens(asked: Mapping[str, Any]) -> bool:
    """Return whether this terminal can show screens and the person wants them."""
    from tui import terminal

    return not asked.get("plain") and terminal.shows_screens(os.environ)


def _wizard(asked: Mapping[str, Any], environ: Mapping[str, str], language: Language) -> int:
    """Open the wizard: as screens where the terminal can, else as lines."""
    if _screens(asked):
        from tui.app import wizard

        return wizard(asked, environ, language)
    from tui.dialogue import plain_wizard

    console = _console(asked, language)
    handle = plain_wizard(console, environ)
    return CANCELLED if handle is None else _follow(handle, console, "apply")


if __name__ == "__main__":
    main()
