"""Whether an action is done already, as the machine itself shows."""

from __future__ import annotations

from steps.engine.context import Context
from steps.host.base import Host
from steps.managers.base import module_files, packages_are
from steps.model.action import Action, FileIs, ModuleBuilt, PackagesAre, Probe, Run, Succeeds

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
        case Succeeds(argv=argv):
            # What is the person's is never run as root, not even to look.
            status = host.run((*context.person_prefix(), *argv) if context.as_other(action) else argv, timeout=_PATIENCE).status
            return None if status is None else status == 0


def _built(host: Host, module: str, kernel: str | None) -> bool | None:
    kernel = kernel or (host.read("/proc/sys/kernel/osrelease") or "").strip()
    return bool(module_files(host, module, kernel)) if kernel else None
