"""Which drivers and toolkit lines are worth a row: of all that exist, those that a person would weigh on this machine."""

from __future__ import annotations

from itertools import chain

from steps.catalog import stack
from steps.catalog.versions import number
from steps.compat import candidates, solve
from steps.compat.case import Case
from steps.model.finding import Patch
from steps.model.offers import Place, place_of

ENDED = 2
"""How many branches past their end of life are listed."""


def drivers(case: Case) -> list[Patch]:
    """Return one offer for each branch and kind of modules, newest first: of the archive where it has it, else of NVIDIA's repository.

    Listed are supported branches, the newest that ended, and whatever is chosen or recommended.
    """
    wanted = _branches(case)
    found: dict[tuple[str, str], Patch] = {}
    # The default of the cards' kind goes first, so that it is what the row of a branch means.
    archive = sorted(
        candidates.archive_drivers(case.distribution, case.data_center), key=lambda patch: bool(patch["driver.server"]) != case.data_center
    )
    for patch in chain(archive, candidates.repository_drivers(case)):
        branch, flavor = str(patch["driver.branch"]), str(patch["driver.flavor"])
        if branch in wanted and branch in stack.branches():
            found.setdefault((branch, flavor), patch)
    return [found[key] for key in sorted(found, key=lambda key: (number(key[0]), key[1] == "open"), reverse=True)]


def _branches(case: Case) -> set[str]:
    """Return the branches that are worth a row."""
    rows = list(stack.branches().values())
    today = stack.checked()
    ended = [row.name for row in rows if row.end_of_life and row.end_of_life <= today and row.kind in ("production", "lts")]
    listed = {row.name for row in rows if row.kind in ("lts", "production") and row.name not in ended} | set(ended[-ENDED:])
    listed |= {gpu.row.last_branch for gpu in case.gpus if gpu.row and gpu.row.last_branch}
    best = solve.recommend(case.machine).choices
    listed |= {branch for branch in (case.answers.driver.branch, best.driver.branch if best else None) if branch}
    return listed


def place(case: Case, packages: tuple[str, ...]) -> Place | None:
    """Return where system packages can be had from here; `None` when nobody could be asked."""
    return place_of(case.machine.offers, packages)
