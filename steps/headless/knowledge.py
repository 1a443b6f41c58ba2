"""The verb `knowledge`: what is known, how old, from where; and its refreshing, signed off by the person."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from steps import documents, lines
from steps.errors import Cancelled, InputError, PreflightError
from steps.headless import knowing
from steps.headless.console import DONE, Console
from steps.headless.facts import host_of
from steps.host.local import LocalHost
from steps.managers import installer
from steps.managers.access import access
from steps.model.base import phrase
from steps.text import say

Confirm = Callable[[str], bool]
"""Shows a question and returns whether the person said yes."""


def knowledge(console: Console, environ: Mapping[str, str]) -> int:
    """Print every table: rows, the day of its facts, the overlay; and what is wrong or old."""
    known = knowing.lay(environ)
    found = knowing.notices(known)
    if console.asked.json:
        body = {
            "tables": [msgspec.to_builtins(one) for one in known.tables],
            "findings": [documents.finding(one, console.asked.language) for one in found],
        }
        console.document(documents.document("knowledge", body))
    else:
        console.lines(lines.knowledge(known.tables, console.asked.language))
        if found:
            console.lines(lines.findings(found, console.asked.language))
    return DONE


def update(console: Console, environ: Mapping[str, str], confirm: Confirm | None) -> int:
    """Read the indexes, show what would change, and keep it when the person says so; `confirm` is `None` without a terminal.

    Raises `PreflightError` when nothing could be read, `InputError` where no network or nobody may be asked, `Cancelled` for a no.
    """
    from steps.detect.machine import detect
    from steps.engine.client import invoking_owner
    from steps.knowledge import update as knowledge_update

    language, asked = console.asked.language, console.asked
    if asked.offline:
        raise InputError("update-offline")
    known, folder = knowing.lay(environ), knowing.overlay_folder(environ)
    owner, host = invoking_owner(), host_of(asked)
    fetching = installer.settings(LocalHost(), environ, home=owner.home, user=owner.name, uid=owner.uid)
    console.err(say(language, phrase("cli.knowledge.reading")))
    who = access(LocalHost(), environ, home=owner.home)
    made = knowledge_update.prepared(detect(host), host, fetching, today=knowing.day(), access=who)
    for trouble in made.unread:
        console.err(say(language, phrase("cli.knowledge.unread", what=trouble)))
    if not made.files:
        raise PreflightError("nothing-read")
    if not asked.json:
        console.lines(lines.changes(made, language))
    keep = asked.yes or (confirm is not None and not asked.json and confirm(say(language, phrase("cli.knowledge.keep"))))
    if keep:
        for name, file in made.files.items():
            reason = folder.write(name, knowledge_update.text(file).encode())
            if reason is not None:
                raise InputError("file-not-written", file=f"{folder.path}/{name}", reason=reason)
        known = knowing.lay(environ)
    if asked.json:
        body = {
            "tables": [msgspec.to_builtins(one) for one in known.tables],
            "changes": [msgspec.to_builtins(one) for one in made.changes],
            "unread": made.unread,
            "untold": made.untold,
            "kept": keep,
            "findings": [documents.finding(one, language) for one in knowing.notices(known)],
        }
        console.document(documents.document("knowledge", body))
    if not keep:
        if confirm is None or asked.json:
            raise InputError("knowledge-needs-yes")
        raise Cancelled("cancelled")
    if not asked.json:
        console.out(say(language, phrase("cli.knowledge.kept", folder=folder.path)))
    return DONE
