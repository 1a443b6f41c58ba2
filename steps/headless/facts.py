"""The verbs that look: `detect`, `capture`; and the machine that the other verbs work on."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from steps import documents, resources
from steps.detect.machine import detect as detect_machine
from steps.detect.summary import headline
from steps.errors import InputError
from steps.headless.console import DONE, Asked, Console
from steps.host.base import Host
from steps.host.local import LocalHost
from steps.host.opening import open_host
from steps.model.base import Record, phrase
from steps.model.machine import Machine
from steps.model.plan import Target
from steps.text import say


class Loaded(Record):
    """A machine that was looked at, and what its actions would change."""

    machine: Machine
    target: Target


def host_of(asked: Asked) -> Host:
    """Return the door to the machine that was asked for."""
    return open_host(asked.machine, asked.root)


def load(asked: Asked, environ: Mapping[str, str]) -> Loaded:
    """Look at the machine and return its facts, with what was last seen on offer, and the target of actions.

    From here on the person's own tables lie over the built-in ones.
    """
    # A verb that only looks has no use for either.
    from steps.headless import knowing, offering

    knowing.lay(environ)
    host = host_of(asked)
    machine = detect_machine(host)
    target = target_of(asked, host, machine, environ)
    return Loaded(machine=offering.cached(machine, host, target.installer, environ), target=target)


def target_of(asked: Asked, host: Host, machine: Machine, environ: Mapping[str, str]) -> Target:
    """Return what the actions would change, and how Python packages are fetched for it."""
    # A verb that only looks has no use for either.
    from steps.engine.client import invoking_owner
    from steps.managers import installer

    owner = invoking_owner()
    # What this machine's environment says about indexes and proxies is nothing about a recorded one.
    fetching = installer.settings(host, {} if host.rehearsal else environ, home=owner.home, user=owner.name, uid=owner.uid)
    if host.rehearsal:
        # A capture says nothing about interpreters and managers; every distribution that is rehearsed has this one.
        named = {name: name for name in ("conda", "mamba", "micromamba", "pixi")}
        fetching = msgspec.structs.replace(fetching, own_python="/usr/bin/python3", managers=named)
    elif host.root == "/":
        fetching = msgspec.structs.replace(fetching, own_python=resources.self_command()[0])
    return Target(
        root=host.root,
        rehearsal=host.rehearsal,
        machine=asked.machine,
        name=host.name,
        summary=headline(machine),
        kernel=machine.os.kernel,
        installer=fetching,
    )


def detect(console: Console) -> int:
    """Print the facts."""
    machine = detect_machine(host_of(console.asked))
    if console.asked.json:
        console.document(documents.machine(machine, console.asked.language))
    else:
        # It knows plans too, and with them the package managers; a document has no use for them.
        from steps import lines

        console.lines(lines.facts(machine, console.asked.language))
    return DONE


def as_the_doctor(host: Host) -> None:
    """Ask what the doctor asks, so that whoever is handed the capture can let the doctor judge it."""
    from steps.doctor.evidence import Evidence
    from steps.doctor.judge import judge

    seen = Evidence(host)
    try:
        judge(seen)
    finally:
        seen.close()


def capture(console: Console, path: str) -> int:
    """Record this machine into a capture file, redacted; raises `InputError` when the file cannot be written."""
    from steps.detect.capture import record

    host = host_of(console.asked)
    data = record(host, more=as_the_doctor)
    try:
        LocalHost().write_bytes(path, data, 0o644)
    except OSError as error:
        raise InputError("file-not-written", file=path, reason=error.strerror or type(error).__name__) from error
    if console.asked.json:
        console.document(documents.document("capture", {"file": path, "bytes": len(data)}))
        return DONE
    console.err(say(console.asked.language, phrase("cli.captured", file=path, kilobytes=len(data) // 1024)))
    return DONE
