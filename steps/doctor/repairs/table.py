"""The repair of a cause as the table has it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from steps.catalog.repairs import RepairRow, StepRow, repair_rows
from steps.doctor.diagnosis import Step
from steps.doctor.evidence import Evidence
from steps.doctor.facts.packages import Manager
from steps.doctor.repairs.base import (
    Plan,
    back,
    install,
    keeping,
    manager_of,
    person,
    proof,
    reboot,
    refresh,
    run,
    service,
    tool,
    write,
)  # fmt: skip
from steps.doctor.repairs.cards import resets, users
from steps.doctor.repairs.modules import images
from steps.doctor.repairs.plain import is_word
from steps.doctor.repairs.sources import nvidias_archive
from steps.doctor.rules.base import Candidate
from steps.model.action import FileIs, RemovePath
from steps.model.base import Param


def row_of(id: str, variant: str) -> RepairRow | None:
    """Return the row of a cause in this variant, else its plain one, else `None`."""
    table = repair_rows()
    return table.get((id, variant)) or table.get((id, ""))


def planned(seen: Evidence, row: RepairRow, candidate: Candidate) -> Plan:
    """Return the repair of a row, filled from the diagnosis."""
    manager = manager_of(seen)
    steps = tuple(one for step in row.steps for one in _steps(seen, step, manager, candidate))
    return Plan(steps=steps, verify=proof(row.proof, manager))


def _steps(seen: Evidence, row: StepRow, manager: Manager | None, candidate: Candidate) -> tuple[Step, ...]:
    """Return the steps of a row of the table: mostly one, none where there is nothing to do on this machine."""
    if row.use == "initramfs":
        return images(seen)
    if row.card:
        return (users(seen, row.says),) if row.card == "users" else resets(seen, candidate, row.says)
    return nvidias_archive(seen, row.says) if row.repository else (_step(seen, row, manager, candidate.params),)


def _step(seen: Evidence, row: StepRow, manager: Manager | None, params: Mapping[str, Param]) -> Step:
    """Return one step; one whose command cannot be filled is a person's."""
    words = {name: value for name, value in params.items() if name not in ("key", "path", "unit", "packages")}
    if row.says == "reboot":
        return reboot()
    if row.refresh:
        return refresh(manager)
    if row.use:
        return tool(row.says, row.use, manager)
    if row.service:
        return service(row.says, row.service)
    if row.install:
        names = row.install.get(manager) if manager else None
        return install(row.says, manager, *names) if names else person(row.says, **words)
    return _filled(seen, row, params, words)


def _filled(seen: Evidence, row: StepRow, params: Mapping[str, Param], words: dict[str, Param]) -> Step:
    """Return a step that is filled from the diagnosis."""
    if row.write:
        text = _fill(row.text, params)
        return write(row.says, row.write, text, **words) if text is not None else person(row.says, **words)
    argv = tuple(_fill(word, params) for word in row.run or row.show)
    known = tuple(word for word in argv if word is not None)
    if len(known) < len(argv) or not argv:
        return person(row.says, **words)
    if row.show:
        return person(row.says, *known, **words)
    undo = tuple(back(*command) for command in row.undo)
    kept = seen.host.exists(row.keeps) if row.keeps else False
    step = run(
        row.says,
        *known,
        undo=undo or ((RemovePath(path=row.keeps),) if row.keeps and not kept else ()),
        done_when=(FileIs(path=row.makes),) if row.makes else (),
        live=row.live,
        interactive=row.interactive,
        words=words,
    )
    return keeping(step, row.keeps) if row.keeps and kept else step


def _fill(text: str, params: Mapping[str, Param]) -> str | None:
    """Return `text` with its braces filled; `None` where something is not known, or not what belongs into a command."""
    for name in re.findall(r"\{(\w+)\}", text):
        value = str(params.get(name, ""))
        if not is_word(value):
            return None
        text = text.replace(f"{{{name}}}", value)
    return text
