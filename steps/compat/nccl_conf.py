"""What `/etc/nccl.conf` will say, and the rules about it; what stands there is kept, explained, and changed only on request."""

from __future__ import annotations

import re
from collections.abc import Mapping

from steps.catalog import stack
from steps.compat import nccl_file
from steps.compat.nccl_said import said
from steps.model.base import Param, Words, phrase
from steps.model.finding import Finding, Patch
from steps.model.machine import Machine
from steps.model.profile import Profile
from steps.model.software import NcclFile

CONF = "/etc/nccl.conf"
AUTO = "auto"
"""The answer that leaves something to NCCL."""
_VARIABLES = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html"
_OWN = re.compile(r"NCCL_[A-Z0-9_]+")
_NOISY = ("INFO", "TRACE")
_SWITCHES = (
    ("interface", "NCCL_SOCKET_IFNAME"),
    ("infiniband", "NCCL_IB_DISABLE"),
    ("p2p", "NCCL_P2P_DISABLE"),
    ("gdr", "NCCL_NET_GDR_LEVEL"),
)
"""The answers and the variable that each of them sets, or takes out of the file when it is left to NCCL."""


# --- the file -----------------------------------------------------------------------------------


def variables(machine: Machine, answers: Profile) -> Mapping[str, str]:
    """Return the variables that the answers come to, in the order of the file; empty when nothing was asked for.

    What a person wrote under `extra` goes before what follows from the other answers.
    """
    asked = answers.nccl
    found: dict[str, str] = {}
    if asked.interface and asked.interface != AUTO:
        found["NCCL_SOCKET_IFNAME"] = _exact(machine, asked.interface)
    if asked.infiniband == "off":
        found["NCCL_IB_DISABLE"] = "1"
    if asked.p2p == "off":
        found["NCCL_P2P_DISABLE"] = "1"
    if asked.gdr == "off":
        found["NCCL_NET_GDR_LEVEL"] = "LOC"
    if asked.debug:
        found["NCCL_DEBUG"] = asked.debug
    return {**found, **dict(sorted((asked.extra or {}).items()))}


def _exact(machine: Machine, interface: str) -> str:
    """Return the interface as NCCL wants it: a name is a prefix there, so `eth1` is written `=eth1` where `eth10` exists."""
    names = [one.name for one in machine.networks]
    begins_others = interface in names and any(name != interface and name.startswith(interface) for name in names)
    # A value of one letter counts as none.
    return f"={interface}" if begins_others or len(interface) == 1 else interface


def user_conf(home: str) -> str:
    """Return a person's own file: NCCL reads it before the system's, and the first word for a name counts."""
    return f"{home.rstrip('/')}/.nccl.conf"


def existing(machine: Machine, path: str = CONF) -> NcclFile | None:
    """Return a configuration file of this machine as it stands; `None` when it is not there or was not seen."""
    return next((one for one in machine.ranks.files if one.path == path), None)


def conf_text(machine: Machine, answers: Profile, path: str = CONF) -> str | None:
    """Return the text that the file will have; `None` when the answers ask for nothing that is not in it, or it must not be written over.

    New lines are plain NAME=VALUE, which every NCCL reads alike; lines that stand there and are not asked about stay byte for byte.
    """
    wanted, there = variables(machine, answers), existing(machine, path)
    if path in machine.ranks.kept:
        return None
    if there is None:
        return nccl_file.merged("", wanted) if wanted else None
    left = {name for answer, name in _SWITCHES if getattr(answers.nccl, answer) == AUTO and name not in wanted}
    present = {line.meant for line in nccl_file.lines(there.text)}
    if not wanted and not left & present:
        return None
    return nccl_file.merged(there.text, wanted, without=left)


def stated(machine: Machine, answers: Profile) -> Mapping[str, str]:
    """Return every variable that NCCL will read from the system's file, as it reads it."""
    there = existing(machine)
    text = conf_text(machine, answers)
    return nccl_file.taken(nccl_file.lines(text if text is not None else there.text if there else ""))


# --- rules about what was asked for -----------------------------------------------------------------


def debug_noisy(machine: Machine, answers: Profile) -> Finding | None:
    """The log level is one for diagnosis."""
    level = stated(machine, answers).get("NCCL_DEBUG", "").upper()
    if level not in _NOISY:
        return None
    extra = "NCCL_DEBUG" in (answers.nccl.extra or {})
    fix: Patch = {"nccl.extra": _without(answers, "NCCL_DEBUG") or None, "nccl.debug": "WARN"} if extra else {"nccl.debug": "WARN"}
    source = variable_source("NCCL_DEBUG")
    return said("nccl-debug-noisy", f"NCCL_DEBUG={level}", (f"NCCL_DEBUG={level}",), "warning", fix=fix, source=source, level=level)


def unknown_variable(machine: Machine, answers: Profile) -> Finding | None:
    """A name that the tables do not have, asked for or in the file: misspelt, or of an NCCL that we do not know."""
    asked = answers.nccl.extra or {}
    unknown = [name for name in asked if name not in stack.nccl_names()]
    if unknown:
        because: tuple[Words, ...] = tuple(f"{name}={asked[name]}" for name in unknown)
        fix: Patch = {"nccl.extra": _without(answers, *unknown) or None}
        return said("nccl-unknown-variable", unknown[0], because, "warning", fix=fix, source=_VARIABLES, name=unknown[0])
    in_file = [line for line in _lines(machine) if line.meant is not None and not line.faults and line.meant not in stack.nccl_names()]
    # A variable of something else (a plugin, MPI) may stand there on purpose.
    own = [line for line in in_file if (line.meant or "").upper().startswith("NCCL")]
    if not own:
        return None
    return said("nccl-unknown-variable", own[0].meant or "", (_place(own[0]),), "warning", source=_VARIABLES, name=own[0].meant or "")


def inline_comment(machine: Machine, answers: Profile) -> Finding | None:
    """A value that carries a comment, a line break or a blank at its end: NCCL takes all of it for the value."""
    extra = answers.nccl.extra or {}
    wrong = {name: value for name, value in extra.items() if "#" in value or value != value.strip() or not value.isprintable()}
    source = nccl_file.source_of("comment")
    if wrong:
        name, value = next(iter(wrong.items()))
        mended = {one: nccl_file.cleaned(text.split("\n")[0]) if one in wrong else text for one, text in extra.items()}
        because: tuple[Words, ...] = (f"{name}={value!r}",)
        return said("nccl-inline-comment", name, because, "error", fix={"nccl.extra": mended}, source=source, name=name, value=repr(value))
    found = [line for line in _left(machine, answers) if "comment" in line.faults]
    if not found:
        return None
    name, value = found[0].meant or "", found[0].value
    facts = tuple(_place(line) for line in found[:4])
    return said(
        "nccl-inline-comment",
        f"{CONF}:{found[0].number}",
        facts,
        "error",
        fix=_mended(answers, found),
        source=source,
        name=name,
        value=repr(value),
    )


# --- rules about what stands in the file ------------------------------------------------------------


def line_misread(machine: Machine, answers: Profile) -> Finding | None:
    """A line of the file by which NCCL sets another name or value than was meant: blanks, quotes, `export`, a carriage return."""
    found = [line for line in _left(machine, answers) if line.misread and "comment" not in line.faults]
    if not found:
        return None
    first = found[0]
    fault: nccl_file.Fault = next(one for one in first.faults if one not in nccl_file.HARMLESS)
    facts = tuple(_place(line) for line in found[:4])
    params: dict[str, Param] = {"line": first.text.strip(), "name": first.meant or ""}
    reason = phrase(f"nccl.fault.{fault}")
    return said(
        "nccl-line-misread",
        f"{CONF}:{first.number}",
        (*facts, reason),
        "warning",
        fix=_mended(answers, found),
        source=nccl_file.source_of(fault),
        **params,
    )


def file_kept(machine: Machine, answers: Profile) -> Finding | None:
    """The system's file is there and could not be read as text: nothing is written over it, so what is asked for comes to nothing."""
    reason, asked = machine.ranks.kept.get(CONF), bool(variables(machine, answers))
    if reason is None or (reason == "encoding" and not asked):
        return None
    because: tuple[Words, ...] = (phrase(f"nccl.because.kept-{reason}", path=CONF),)
    return said("nccl-file-kept", CONF, because, "error" if asked else "warning", source=nccl_file.source_of("blanks"), path=CONF)


def line_ignored(machine: Machine, answers: Profile) -> Finding | None:
    """A line of the file that sets nothing, though it looks as if it did."""
    found = [line for line in _left(machine, answers) if line.faults and not line.misread]
    if not found:
        return None
    first, fault = found[0], found[0].faults[0]
    facts: tuple[Words, ...] = (*(_place(line) for line in found[:4]), phrase(f"nccl.fault.{fault}"))
    return said("nccl-line-ignored", f"{CONF}:{first.number}", facts, "info", source=nccl_file.source_of(fault), line=first.text.strip())


def user_file_first(machine: Machine, answers: Profile) -> Finding | None:
    """A person's own file sets what the answers set too: it is read first, and the first word counts."""
    wanted = variables(machine, answers)
    for one in machine.ranks.files:
        if one.path == CONF:
            continue
        own = nccl_file.taken(nccl_file.lines(one.text))
        over = [name for name in wanted if name in own and own[name] != wanted[name]]
        if over:
            because: tuple[Words, ...] = tuple(f"{one.path}: {name}={own[name]}" for name in over[:4])
            rule = next((row for row in stack.nccl_rules() if row.name == "lookup_order"), None)
            return said(
                "nccl-user-file-first", one.path, because, "warning", source=rule.source if rule else None, name=over[0], path=one.path
            )
    return None


def _lines(machine: Machine) -> tuple[nccl_file.Line, ...]:
    """Return the lines of the system's file as it stands."""
    there = existing(machine)
    return nccl_file.lines(there.text) if there else ()


def _left(machine: Machine, answers: Profile) -> tuple[nccl_file.Line, ...]:
    """Return the lines that will stand in the system's file after the run and stood there before."""
    text = conf_text(machine, answers)
    return _lines(machine) if text is None else nccl_file.lines(text) if existing(machine) else ()


def _place(line: nccl_file.Line) -> str:
    return f"{CONF}:{line.number}: {line.text.strip()}"


def _mended(answers: Profile, found: list[nccl_file.Line]) -> Patch | None:
    """Return the patch that writes the lines as they were meant; `None` when one of them cannot be told, or is not NCCL's own.

    A profile takes NCCL's names only.
    """
    if not all(_OWN.fullmatch(line.meant or "") for line in found):
        return None
    meant = {line.meant: line.wanted for line in found if line.meant is not None and line.wanted}
    return {"nccl.extra": {**(answers.nccl.extra or {}), **meant}} if len(meant) == len({line.meant for line in found}) else None


def _without(answers: Profile, *names: str) -> dict[str, str]:
    """Return the extra variables but for some."""
    return {name: value for name, value in (answers.nccl.extra or {}).items() if name not in names}


def variable_source(name: str) -> str | None:
    """Return where a variable is described."""
    row = stack.nccl_variables().get(name)
    return row.source if row else None
