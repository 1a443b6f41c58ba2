"""Where DKMS comes from on systems whose own archive lacks it: EPEL, and the repository of builders that EPEL rests on."""

from __future__ import annotations

import re

from steps.catalog import package_sources
from steps.compat.case import Case
from steps.compat.findings import driver_finding
from steps.model.action import AnyAction, Command, PackagesAre, Run, Succeeds, installing
from steps.model.base import phrase
from steps.model.finding import Finding

_REPOSITORIES = "/etc/yum.repos.d"


def wanted(case: Case) -> bool:
    """Return whether the planned driver may need DKMS here, and the archive of the distribution has none."""
    row = case.distribution
    return case.driver.origin == "planned" and case.driver.source == "nvidia-repo" and row is not None and row.dkms == "extra"


def plan(case: Case) -> tuple[AnyAction, ...]:
    """Return what makes DKMS to be had; empty where nothing is needed, and where it is not known how."""
    row = (
        package_sources.extra_source(case.machine.os.id, case.distribution.version if case.distribution else None) if wanted(case) else None
    )
    if row is None:
        return ()
    return (_release(row), _builders(row, case.machine.os.arch or "x86_64"))


def _release(row: package_sources.ExtraSource) -> AnyAction:
    """Return what brings EPEL: a package of the distribution, or the one that Fedora offers."""
    title, why = phrase("driver.action.extra", name=row.release), phrase("driver.why.extra")
    if row.url is None:
        return installing("dnf", "repository.extra", title, (row.release,), why=why, seconds=10)
    return Run(
        id="repository.extra",
        title=title,
        why=why,
        lane="packages",
        argv=("dnf", "-y", "install", row.url),
        done_when=(PackagesAre(manager="dnf", packages={row.release: None}),),
        undo=(Command(argv=("dnf", "-y", "remove", row.release)),),
        seconds=10,
    )


def _builders(row: package_sources.ExtraSource, arch: str) -> AnyAction:
    """Return what turns on the repository of builders: EPEL's own command knows its name on each kin, with or without a subscription."""
    names = "|".join(re.escape(name.format(arch=arch)) for name in row.builders)
    # A section of a file, up to the next one, in which it is turned on; one that was on before is left on by undo.
    there = Succeeds(argv=("grep", "-rqzP", rf"\[({names})\][^\[]*\nenabled *= *1", _REPOSITORIES))
    return Run(
        id="repository.builders",
        title=phrase("driver.action.builders", name=row.builders[0].format(arch=arch)),
        why=phrase("driver.why.builders"),
        lane="packages",
        argv=("crb", "enable"),
        done_when=(there,),
        undo=(Command(argv=("crb", "disable")),),
        seconds=10,
    )


def source_unknown(case: Case) -> tuple[Finding, ...]:
    """DKMS is not in the archive of this system, and it is not known how its extra packages are turned on."""
    if not wanted(case) or case.distribution is None or package_sources.extra_source(case.machine.os.id, case.distribution.version):
        return ()
    return (
        driver_finding(
            case,
            "driver-dkms-unknown",
            "warning",
            (phrase("driver.because.no-dkms", system=case.system),),
            case.distribution.source,
            system=case.system,
        ),
    )
