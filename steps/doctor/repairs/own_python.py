"""A proof by the Python of an environment itself, as a person has it who logs in now: what it imports tells whether a cause is gone."""

from __future__ import annotations

import shlex

from steps.doctor.diagnosis import Proof
from steps.doctor.evidence import Evidence
from steps.doctor.repairs.base import command_proof
from steps.host.trusted_path import works_on

IMPORTS = "import torch"
HAS_CUDA = "import sys, torch; sys.exit(torch.version.cuda is None)"
_LOGIN = ("env", "-i", "HOME=/root", "sh", "-lc")
"""A login shell sets the variables that the system's files set, and no others: what this process was handed is of before the repair."""


def shown_by(path: str | None, line: str, seen: Evidence) -> Proof | None:
    """Return the proof that a line of Python ends well in the environment at `path`; `None` where root may run nothing out of it."""
    if path is None or seen.rehearsal or seen.host.host.root != "/" or not _trusted(path):
        return None
    return command_proof("own-python", *shown_as(path, line), path=path)


def shown_as(path: str, line: str) -> tuple[str, ...]:
    """Return the command that runs a line in an environment; its own folder is no part of the search path."""
    return (*_LOGIN, f"cd / && exec {shlex.quote(f'{path}/bin/python')} -c {shlex.quote(line)}")


def is_own_python(argv: tuple[str, ...]) -> bool:
    """Return whether a command is such a proof, and root may run it still."""
    words = shlex.split(argv[-1]) if argv[:-1] == _LOGIN else []
    if words[:4] != ["cd", "/", "&&", "exec"] or len(words) != 7 or words[5] != "-c" or words[6] not in (IMPORTS, HAS_CUDA):
        return False
    return words[4].endswith("/bin/python") and _trusted(words[4].removesuffix("/bin/python"))


def _trusted(path: str) -> bool:
    return works_on(path, f"{path}/bin/python") == "root"
