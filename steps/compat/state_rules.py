"""The rules about a driver that is here and stays: whether its parts fit each other, and whether they run at all."""

from __future__ import annotations

from steps.catalog.linux import in_tree_names
from steps.compat.case import Case
from steps.compat.findings import driver_finding
from steps.model.base import Words, phrase
from steps.model.finding import Finding

Found = tuple[Finding, ...]


def driver_mismatch(case: Case) -> Found:
    """The loaded module and the libraries are of different releases: every call ends with an error."""
    driver = case.machine.driver
    if not _stays(case, "mismatch"):
        return ()
    module, library = driver.kernel_version or "?", driver.library_version or "?"
    because = (phrase("driver.because.versions", module=module, library=library),)
    return (driver_finding(case, "driver-mismatch", "warning", because, None, module=module, library=library),)


def driver_not_loaded(case: Case) -> Found:
    """Parts of a driver are installed and its module is not loaded, mostly because none was built for this kernel."""
    if not _stays(case, "not-loaded"):
        return ()
    kernel = case.machine.os.kernel or "?"
    because: list[Words] = [phrase("driver.because.kernel", kernel=kernel), phrase("driver.because.no-module")]
    if case.machine.headers is False:
        because.append(phrase("driver.because.headers", folder=f"/lib/modules/{kernel}/build"))
    return (driver_finding(case, "driver-not-loaded", "warning", tuple(because), "dkms(8)", kernel=kernel),)


def driver_blocked(case: Case) -> Found:
    """Another driver holds the cards; a module that Secure Boot refused is the firmware step's."""
    strangers = in_tree_names()
    holders = sorted({gpu.card.kernel_driver for gpu in case.gpus if gpu.card.kernel_driver in strangers})
    if not _stays(case, "blocked") or not holders:
        return ()
    because = tuple(
        phrase("driver.because.held-by", name=gpu.name, driver=gpu.card.kernel_driver or "?")
        for gpu in case.kinds
        if gpu.card.kernel_driver in strangers
    )
    return (driver_finding(case, "driver-blocked", "warning", because, None, holder=str(holders[0])),)


def driver_failing(case: Case) -> Found:
    """The module is there and drives no card."""
    if not _stays(case, "failing"):
        return ()
    because = (phrase("driver.because.silent", module=case.machine.driver.kernel_version or "?"),)
    return (driver_finding(case, "driver-failing", "warning", because, None),)


def _stays(case: Case, state: str) -> bool:
    """Whether the driver that is here is in this state and the answers leave it as it is."""
    return case.driver.origin == "installed" and bool(case.gpus) and case.machine.driver.state == state


def gpu_in_use(case: Case) -> Found:
    """Somebody uses a card whose driver would be replaced: the run names everybody and asks before it changes anything."""
    users = case.machine.users or ()
    if case.driver.origin != "planned" or case.machine.driver.kernel_version is None or not users:
        return ()
    because = tuple(phrase("driver.because.uses", name=user.name or "?", pid=user.pid) for user in users[:_MOST_NAMED])
    names = ", ".join(dict.fromkeys(user.name or "?" for user in users[:_MOST_NAMED]))
    return (driver_finding(case, "gpu-in-use", "warning", because, None, subject=names, names=names, count=len(users)),)


_MOST_NAMED = 5
