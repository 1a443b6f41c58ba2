"""Which lines of a failed action's output say why it failed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from steps.model.run import TAKEN_BACK, UNREADABLE

_TELLING = re.compile(
    r"(?i)(\b(?:error|fatal|cannot|unable|denied|refused|conflict|no space|not found|unmet)\b|^E: |^dpkg: |^Traceback|^\S*Error: )"
)


_OF_DPKG = re.compile(r"dpkg: error processing (?:package|archive) ")
_BEGINS = re.compile(r"(?:Setting up|Preparing to unpack|Unpacking|Selecting previously|Removing|Purging|Processing triggers for) ")
_CAUSE = re.compile(r"(?:cause|Caused by): ")
_DEPENDANT = "dependency problems"
"""What dpkg says below the name of a package that only waits for another one."""
_SHORT, _COMMAND = 2, "$ "
"""The command stands above what it said, with its arguments: these name conflicts and errors that nobody has."""
TAIL = 1 << 18
"""So many bytes of an output's end are looked at: behind the first failure stand those of all packages that need it."""


def deciding(lines: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """Return the lines that say why: dpkg's first failure, uv's last error with its causes, else the last ones that sound like it.

    Where nothing does, it is the last line that says anything. Once it is being taken back, what was said before is no reason.
    Who says two lines only has said it: a proof names the cause, and below it what would show it again.
    """
    said = _that_count([line.strip() for line in lines if line.strip() and not line.startswith(_COMMAND)])
    if len(said) <= _SHORT:
        return tuple(said)
    return _of_dpkg(said, most) or _chained(said, most) or _telling(said)[-most:] or tuple(said[-1:])


def _that_count(said: list[str]) -> list[str]:
    """Return the lines since the last undo began, or since nothing could be read any more; all where there was neither."""
    begun = next((at for at in range(len(said) - 1, -1, -1) if said[at] in (TAKEN_BACK, UNREADABLE)), None)
    return said if begun is None else said[begun + 1 :]


def _telling(said: Sequence[str]) -> tuple[str, ...]:
    """Return the lines that sound like a reason."""
    return tuple(line for line in said if _TELLING.search(line))


def _chained(said: Sequence[str], most: int) -> tuple[str, ...]:
    """Return uv's last error, what it was at and what lies at the bottom of it; empty where no error has causes below it."""
    error = next((at for at in range(len(said) - 2, -1, -1) if said[at].startswith("error: ") and _CAUSE.match(said[at + 1])), None)
    if error is None:
        return ()
    causes = [line for line in said[error + 1 :] if _CAUSE.match(line)]
    return (said[error], *(causes if len(causes) < most else (*causes[: most - 2], causes[-1])))


def _of_dpkg(said: Sequence[str], most: int) -> tuple[str, ...]:
    """Return what the package that failed by itself printed last, and dpkg's line; empty where dpkg names none."""
    errors = (at for at, line in enumerate(said) if _OF_DPKG.match(line) and not "".join(said[at + 1 : at + 2]).startswith(_DEPENDANT))
    error = next(errors, None)
    if error is None:
        return ()
    begun = next((at for at in range(error - 1, -1, -1) if _BEGINS.match(said[at])), -1)
    own = said[begun + 1 : error]
    if not own:
        return tuple(said[error : error + 2])
    return (*(_telling(own) or tuple(own))[1 - most :], said[error])
