"""Troubles of the past: what a log tells and what later success, a later boot, or the present state has overtaken."""

from __future__ import annotations

import re
from collections.abc import Callable

from steps.doctor import numbers
from steps.doctor.diagnosis import Foreign
from steps.doctor.events.base import Event, Events
from steps.doctor.events.builds import CompilerRefused
from steps.doctor.events.dkms import BuildFailed, CodeError, HeadersMissing, OptionRefused
from steps.doctor.events.kernel import ApiMismatch, Loading, ModuleMix
from steps.doctor.events.nvml import NvmlError
from steps.doctor.events.outcomes import SetUp
from steps.doctor.events.runs import Locked, NouveauRunning
from steps.doctor.facts.packages import Packages
from steps.doctor.facts.versions import Versions, fit

_OVERTAKEN = (ApiMismatch, ModuleMix, NvmlError, BuildFailed, CodeError, HeadersMissing, OptionRefused, CompilerRefused, NouveauRunning)
"""What a driver that works, in one version everywhere, has behind it."""
_WRITTEN = ("/var/log/", "/var/lib/dkms/")
_KERNELS = re.compile(r"/var/log/(?:kern|messages|syslog|dmesg)[\w.-]*$")
_STARTED = re.compile(r"^Log started: .*$", re.MULTILINE)
_TROUBLE = re.compile(r"^(?:dpkg: |E: |Errors were encountered)|bad exit status|Bad return status", re.MULTILINE)
_BUILD = re.compile(r"bad exit status|Bad return status")


def unfinished(text: str) -> str:
    """Return the sections of apt's log that still count: of those before a later one without any trouble only failed builds do.

    What dpkg could not do it tries again at every later call, and complains again; a module is built anew for its own reasons only.
    """
    starts = [found.start() for found in _STARTED.finditer(text)]
    if not starts:
        return text
    sections = [text[: starts[0]], *(text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True))]
    clean = [at for at, one in enumerate(sections) if "Setting up " in one and not _TROUBLE.search(one)]
    last = max(clean, default=0)
    return "".join(one for at, one in enumerate(sections) if at >= last or _BUILD.search(one))


def in_one_version(versions: Versions, packages: Packages, answers: bool | None) -> bool:
    """Return whether the driver answers and nothing of it, loaded or installed, is of another version; `versions` come from no log."""
    if answers is not True or not versions.loaded:
        return False
    told = [*versions.loaded, *versions.on_disk, *versions.user]
    return all(fit(one, versions.loaded[0]) for one in told) and not any(row.half for row in packages.driver())


def foreign(events: Events, handed: set[str], versions: Versions) -> Foreign | None:
    """Return that the driver which handed logs tell of is none that is here; `None` where one of its versions is, or nothing is known."""
    here = [one.value for one in (*versions.loaded, *versions.on_disk, *versions.user)]
    mismatches = [event for event in events.all(ApiMismatch) if event.place.source in handed]
    there = [version for event in mismatches for version in (event.client, event.module) if version]
    there += [event.library for event in events.all(NvmlError) if event.library and event.place.source in handed]
    there += [event.version for event in events.all(Loading) if event.place.source in handed]
    if not here or not there or any(numbers.agree(one, other) for one in there for other in here):
        return None
    return Foreign(there=there[0], here=here[0])


def overtaken(events: Events, handed: set[str], *, works: bool, log_of_boot: bool) -> Callable[[Event], bool]:
    """Return the test for events that are of the past.

    `works`: the driver answers in one version everywhere. `log_of_boot`: the kernel's log of this boot was read itself.
    """
    done = {one.place.source: one.place.order for one in events.all(SetUp)}

    def past(event: Event) -> bool:
        source = event.place.source
        if isinstance(event, Locked):
            return event.place.order < done.get(source, 0)
        if source in handed:
            return False
        if log_of_boot and _KERNELS.match(source):
            return True
        return works and isinstance(event, _OVERTAKEN) and (source == "dmesg" or source.startswith(_WRITTEN))

    return past
