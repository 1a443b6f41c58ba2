"""Whether an action is done already, as the machine itself shows."""

from __future__ import annotations

import re

from steps.engine.context import Context
from steps.host.base import Host
from steps.managers import apt_sources
from steps.managers.base import module_files, packages_are
from steps.model.action import Action, AptReads, FileIs, ModuleBuilt, PackagesAre, Probe, Run, Succeeds
from steps.model.base import Phrase, phrase

_PATIENCE = 120.0
"""A probe may import a framework: seconds."""


def is_done(action: Action, context: Context) -> bool | None:
    """Return whether all probes of `action` hold; `False` when it has none, `None` when one is not known and none fails."""
    if not action.done_when:
        return False
    answers = [_holds(probe, action, context) for probe in action.done_when]
    if False in answers:
        return False
    return None if None in answers else True


def is_gone(probes: tuple[Probe, ...], action: Action, context: Context) -> bool:
    """Return whether none of the probes holds; `False` when there are none, or one is not known."""
    return bool(probes) and all(_holds(probe, action, context) is False for probe in probes)


def _holds(probe: Probe, action: Action, context: Context) -> bool | None:
    host: Host = context.outside if isinstance(action, Run) and action.outside else context.host
    match probe:
        case FileIs(path=path, text=None):
            return host.exists(path)
        case FileIs(path=path, text=text):
            return host.read(path) == text
        case PackagesAre():
            return packages_are(probe, host)
        case ModuleBuilt(module=module, kernel=kernel):
            return _built(host, module, kernel or context.plan.target.kernel)
        case AptReads(urls=urls, suite=suite):
            return apt_sources.reads(host, *urls, suite=suite)
        case Succeeds(argv=argv):
            # What is the person's is never run as root, not even to look.
            status = host.run((*context.person_prefix(), *argv) if context.as_other(action) else argv, timeout=_PATIENCE).status
            return None if status is None else status == 0


def _built(host: Host, module: str, kernel: str | None) -> bool | None:
    kernel = kernel or (host.read("/proc/sys/kernel/osrelease") or "").strip()
    return bool(module_files(host, module, kernel)) if kernel else None


_BUILD_ERROR = re.compile(r"^.*(?:\berror:|\bError!|\*\*\* ).*$", re.MULTILINE)


def why_not_done(action: Action, context: Context) -> Phrase:
    """Return why an action that ended well did not make what it should have: for a module, what its build or its lack says."""
    for probe in action.done_when:
        if isinstance(probe, ModuleBuilt):
            kernel = probe.kernel or context.plan.target.kernel or (context.host.read("/proc/sys/kernel/osrelease") or "").strip()
            if kernel and not module_files(context.host, probe.module, kernel):
                return _why_no_module(context.host, probe.module, kernel)
    return phrase("engine.failed.not-done")


def _why_no_module(host: Host, module: str, kernel: str) -> Phrase:
    """Return why dkms built nothing: its packages end without an error then."""
    if host.exists(f"/lib/modules/{kernel}/build") is False:
        return phrase("engine.failed.no-headers", module=module, kernel=kernel)
    logs = host.glob(f"/var/lib/dkms/{module}*/*/build/make.log")
    told = host.run(("tail", "-c", "65536", "--", *logs)).stdout if logs else ""
    errors = _BUILD_ERROR.findall(told)
    if errors:
        return phrase("engine.failed.module-error", module=module, kernel=kernel, text=errors[0].strip()[:200])
    return phrase("engine.failed.no-module", module=module, kernel=kernel)
