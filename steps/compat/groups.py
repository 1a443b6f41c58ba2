"""What the rules find, group by group, worked out once for the answers that a group looks at."""

from __future__ import annotations

from steps.compat.builds import builds_need_a_toolkit, line_needed
from steps.compat.case import Case
from steps.compat.driver_rules import driver_findings
from steps.compat.forward import relied_on
from steps.compat.framework_rules import wheel_findings
from steps.compat.memory import once
from steps.compat.together_rules import frameworks_conflict
from steps.compat.toolkit_rules import toolkit_findings
from steps.compat.wheels import brings_cuda
from steps.model.finding import Finding

Found = tuple[Finding, ...]


def about_driver(case: Case) -> Found:
    """Return what the rules find about the driver: only its own answers count."""
    return once(case.machine, ("driver", case.answers.driver), lambda: driver_findings(case))


def about_toolkit(case: Case) -> Found:
    """Return what the rules find about CUDA, cuDNN and NCCL: the driver counts, whether PyTorch brings a CUDA, and what is compiled."""
    answers = case.answers
    key = ("toolkit", answers.driver, answers.toolkit, brings_cuda(case), line_needed(case))
    return once(case.machine, key, lambda: toolkit_findings(case))


def about_frameworks(case: Case) -> Found:
    """Return what the rules find about single wheels and about them together: driver and environment count.

    The toolkit does where a package of its own brings a newer driver library.
    """
    answers = case.answers
    environment = (answers.environment.manager, answers.environment.python)
    key = ("frameworks", answers.driver, relied_on(case), *environment, tuple(answers.frameworks.items()))
    return once(case.machine, key, lambda: wheel_findings(case) + frameworks_conflict(case))


def everything(case: Case) -> Found:
    """Return what all rules find, without repairs."""
    return about_driver(case) + about_toolkit(case) + about_frameworks(case) + builds_need_a_toolkit(case)


def errors(found: Found) -> set[str]:
    """Return the codes of what forbids something."""
    return {finding.code for finding in found if finding.severity == "error"}


def forbidden(found: Found) -> bool:
    """Return whether something forbids it."""
    return any(finding.severity == "error" for finding in found)
