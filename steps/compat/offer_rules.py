"""The rules that hold the tables against what is really on offer here; where nobody was asked they say nothing."""

from __future__ import annotations

from steps.compat.case import Case
from steps.compat.driver_packages import packages
from steps.compat.findings import driver_finding
from steps.model.base import phrase
from steps.model.finding import Finding
from steps.model.offers import place_of

Found = tuple[Finding, ...]
_ASKED = {"distro": "apt-cache policy, dnf repoquery", "nvidia-repo": "https://developer.download.nvidia.com/compute/cuda/repos/"}


def missing(case: Case) -> tuple[str, ...]:
    """Return the packages of the planned driver when the lists of its source were asked and do not have them; empty otherwise."""
    offers, source = case.machine.offers, case.driver.source
    if offers is None or case.driver.origin != "planned" or source not in _ASKED:
        return ()
    lists = offers.added if source == "nvidia-repo" else offers.here
    wanted = packages(case) if lists is not None else ()
    return wanted if place_of(offers, wanted) == "known" else ()


def distance(case: Case) -> int:
    """Return how far away the driver's packages are: 0 on offer here, 1 in a repository that would be added, 2 on offer in neither."""
    if case.driver.source == "keep":
        return 0
    if missing(case):
        return 2
    here = case.machine.offers is not None and place_of(case.machine.offers, packages(case)) == "here"
    return 0 if here or case.driver.source == "distro" else 1


def driver_not_in_lists(case: Case) -> Found:
    """The tables say that the source carries the driver, and its package lists of today do not."""
    wanted = missing(case)
    if not wanted or case.driver.row is None:
        return ()
    place = case.system if case.driver.source == "distro" or case.repository is None else case.repository.token
    because = (phrase("driver.because.not-in-lists", packages=", ".join(wanted)),)
    title = f"{case.driver.row.name} {case.driver.flavor or ''}".strip()
    return (
        driver_finding(case, "driver-not-offered", "warning", because, _ASKED[case.driver.source or "distro"], title=title, place=place),
    )
