"""NCCL's files as rows: what stands in each now, line by line, and what will be written."""

from __future__ import annotations

from collections.abc import Mapping

from steps.catalog import stack
from steps.compat import nccl_conf, nccl_file
from steps.model.base import phrase
from steps.model.choice import Mark, Note, Option
from steps.model.finding import Finding
from steps.model.machine import Machine
from steps.model.profile import Profile
from steps.model.software import NcclFile

_NAME = 19
"""So many letters of a variable stand in a row of a file."""


def preview(machine: Machine, answers: Profile) -> tuple[Note, ...]:
    """Return the file as it would be written, line by line."""
    text = nccl_conf.conf_text(machine, answers)
    if text is None:
        return (Note(label="file", text=phrase("nccl.note.no-file", path=nccl_conf.CONF)),)
    lines = tuple(Note(label="file", text=line, command=True) for line in text.splitlines())
    return (Note(label="file", text=nccl_conf.CONF), *lines, Note(label="undo", text=phrase("nccl.note.undo")))


def written(machine: Machine, answers: Profile) -> Option:
    """Return the file as it will be written; its lines are the hint."""
    text = nccl_conf.conf_text(machine, answers)
    count = len((text or "").splitlines())
    return Option(
        value="written",
        label=nccl_conf.CONF,
        mark="info" if text is None else "good",
        tag=phrase(f"nccl.tag.{'stays' if text is None else 'line' if count == 1 else 'lines'}", count=count),
        sentences=(phrase("nccl.explain.written"),),
        notes=preview(machine, answers),
    )


def lines(machine: Machine, answers: Profile, file: NcclFile) -> tuple[Option, ...]:
    """Return one row for each line that a file has now: what NCCL takes from it, and what is wrong with it."""
    remedies = {"nccl-inline-comment": nccl_conf.inline_comment, "nccl-line-misread": nccl_conf.line_misread}
    found = {code: rule(machine, answers) for code, rule in remedies.items()} if file.path == nccl_conf.CONF else {}
    return tuple(_line(line, found) for line in nccl_file.lines(file.text) if line.text.strip())


def _line(line: nccl_file.Line, found: Mapping[str, Finding | None]) -> Option:
    """Return the row of one line; what mends it is the finding about its kind."""
    described = line.meant in stack.nccl_variables()
    tag = (
        "misread"
        if line.misread
        else "no-effect"
        if line.faults
        else "comment"
        if line.meant is None
        else "read"
        if line.meant in stack.nccl_names()
        else "unknown-name"
    )
    mark: Mark = "bad" if line.misread else "good" if tag == "read" else "unknown" if tag == "unknown-name" else "info"
    finding = found.get("nccl-inline-comment" if "comment" in line.faults else "nccl-line-misread") if line.misread else None
    if line.name is None or line.meant is None:
        takes = phrase("nccl.explain.line-nothing", line=line.text.strip())
    else:
        takes = phrase("nccl.explain.line-takes", line=line.text, name=line.name, value=line.value)
    return Option(
        value=str(line.number),
        label=f"{line.number} {_shown(line)}",
        mark=mark,
        tag=phrase(f"nccl.tag.{tag}"),
        sentences=(takes, *((phrase(f"nccl_variables.meaning.{line.meant}"),) if described and line.meant else ())),
        notes=tuple(Note(label="trap", text=phrase(f"nccl.fault.{fault}")) for fault in line.faults),
        findings=(finding,) if finding else (),
    )


def _shown(line: nccl_file.Line) -> str:
    """Return what a row calls a line: its variable, else its text; a file may hold anything, so only plain letters count."""
    text = (line.meant or line.text.strip()).removeprefix("NCCL_")
    plain = "".join(letter if letter.isascii() and letter.isprintable() else "?" for letter in text)
    room = _NAME - len(str(line.number))
    return plain if len(plain) <= room else plain[: room - 1] + "…"
