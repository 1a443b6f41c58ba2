"""Where a driver's packages come from: NVIDIA's repository and the branch of it, Debian's components, the drivers' PPA."""

from __future__ import annotations

from steps.catalog.stack import CudaRepository, branches
from steps.compat import driver_packages
from steps.compat.case import Case
from steps.compat.findings import driver_finding
from steps.managers import apt_repository
from steps.model.action import AnyAction, AptReads, Command, ManagerName, RemovePath, Run, Succeeds, Write, installing
from steps.model.base import phrase
from steps.model.finding import Finding

_PPA = "ppa:graphics-drivers/ppa"
_PPA_AT = tuple(f"https://{host}/graphics-drivers/ppa/ubuntu" for host in ("ppa.launchpadcontent.net", "ppa.launchpad.net"))
"""Where apt reads it, by its name now and by the one that add-apt-repository wrote until 2021."""
_PPA_FILE = "/etc/apt/sources.list.d/graphics-drivers-ubuntu-ppa"
_PPA_KEYS = tuple(f"/etc/apt/trusted.gpg.d/graphics-drivers{middle}ppa.gpg" for middle in ("-ubuntu-", "_ubuntu_"))
"""Where add-apt-repository lays it: since Ubuntu 23.10 as `.sources` with its key inside, before as `.list` with the key beside."""
_MODULE = "nvidia-driver"
_STREAM_FILE = f"/etc/dnf/modules.d/{_MODULE}.module"
_VERSIONLOCK = ("dnf", "-y", "versionlock")
_LOCKING = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/version-locking.html"
_LOCKS = "/etc/dnf/plugins/versionlock.list"


def plan(case: Case) -> tuple[AnyAction, ...]:
    """Return what makes the source of the packages known."""
    row, url = case.distribution, driver_packages.repository_url(case)
    manager = row.manager if row else "apt"
    if case.driver.source == "nvidia-repo" and url:
        if manager == "apt":
            return (*apt_repository.nvidia_repository(url), _pin(case))
        return (*repository_file(case, url, manager), *_stream(case), *_locks(case))
    if case.driver.source == "distro" and row and row.components and row.codename:
        known = driver_packages.packages(case)[0].partition("=")[0]
        pin = (_pin(case),) if pinned(case) else ()
        return (*apt_repository.debian_components(row.codename, known), *pin)
    if case.driver.source == "ppa":
        return (_ppa(case),)
    return ()


def _ppa(case: Case) -> AnyAction:
    """Return what adds the drivers' PPA; undo removes it, with its key where that lies in a file of its own; one that was there stays.

    add-apt-repository asks Launchpad also when it removes: without a network its files go all the same.
    """
    add = ("add-apt-repository", "--yes")
    codename = case.distribution.codename if case.distribution else None
    files = tuple(f"{_PPA_FILE}-{codename}.{end}" for end in ("sources", "list", "list.save")) if codename else ()
    return Run(
        id="repository.ppa",
        title=phrase("driver.action.ppa"),
        lane="packages",
        argv=(*add, _PPA),
        done_when=(AptReads(urls=_PPA_AT, suite=codename),),
        undo=(Command(argv=(*add, "--remove", _PPA), tolerant=True), *(RemovePath(path=path) for path in (*files, *_PPA_KEYS))),
        seconds=20,
    )


def pinned(case: Case) -> bool:
    """Return whether a pin has to say which branch a distribution's archive gives."""
    return case.driver.source == "distro" and (driver_packages.astray(case) or driver_packages.older(case))


def _pin(case: Case) -> AnyAction:
    return apt_repository.branch_pin(case.driver.branch or "", older=driver_packages.older(case))


def repository_file(case: Case, url: str, manager: ManagerName) -> tuple[AnyAction, ...]:
    """Return what makes NVIDIA's repository known to dnf or zypper, which read one file of the repository's own."""
    token = case.repository.token if case.repository else "?"
    title = phrase("driver.action.repository-file", token=token)
    if manager == "zypper":
        argv: tuple[str, ...] = ("zypper", "--non-interactive", "addrepo", "--refresh", url, f"cuda-{token}")
        return (Run(id="repository.source", title=title, lane="packages", argv=argv, seconds=5),)
    path = f"/etc/yum.repos.d/cuda-{token}.repo"
    argv = ("curl", "--fail", "--silent", "--show-error", "--location", "--output", path, f"{url}cuda-{token}.repo")
    there = Succeeds(argv=("test", "-s", path))
    return (
        Run(id="repository.source", title=title, lane="packages", argv=argv, done_when=(there,), undo=(RemovePath(path=path),), seconds=5),
    )


def _wanted_stream(case: Case) -> str | None:
    """Return the module stream of the branch, "580-open"; `None` where drivers do not come as streams."""
    if case.driver.source != "nvidia-repo" or case.repository is None or not case.repository.streams:
        return None
    return f"{case.driver.branch}" + ("-open" if case.driver.flavor == "open" else "")


def _stream(case: Case) -> tuple[AnyAction, ...]:
    """Return what chooses the branch where drivers come as module streams: the one that is enabled first has to be let go."""
    wanted, enabled = _wanted_stream(case), case.machine.driver.stream
    if wanted is None:
        return ()
    chosen = Run(
        id="repository.stream",
        title=phrase("driver.action.stream", stream=f"{_MODULE}:{wanted}"),
        lane="packages",
        argv=("dnf", "-y", "module", "enable", f"{_MODULE}:{wanted}"),
        done_when=(Succeeds(argv=("grep", "-qxE", f"stream *= *{wanted}", _STREAM_FILE)),),
        undo=_stream_back(enabled),
        seconds=10,
    )
    if enabled in (None, wanted):
        return (chosen,)
    reset = Run(
        id="repository.stream-reset",
        title=phrase("driver.action.stream-reset", stream=f"{_MODULE}:{enabled}"),
        lane="packages",
        argv=("dnf", "-y", "module", "reset", _MODULE),
        undo=_stream_back(enabled),
        seconds=10,
    )
    return (reset, chosen)


def _stream_back(enabled: str | None) -> tuple[Command, ...]:
    """Return what leads back to the stream that was enabled, or to none."""
    reset = Command(argv=("dnf", "-y", "module", "reset", _MODULE))
    return (reset, Command(argv=("dnf", "-y", "module", "enable", f"{_MODULE}:{enabled}"))) if enabled else (reset,)


def _lock(case: Case) -> CudaRepository | None:
    """Return the repository whose branches are kept apart by a lock of dnf's; `None` where streams do, or nothing is known to."""
    return case.repository if case.driver.source == "nvidia-repo" and case.repository and case.repository.lock_tool else None


def _locks(case: Case) -> tuple[AnyAction, ...]:
    """Return what locks the driver to its branch, in the place of locks to others; the file that holds them was kept before."""
    row, branch = _lock(case), case.driver.branch or "?"
    if row is None or row.lock_tool is None or row.lock is None:
        return ()
    why = phrase("driver.why.lock")
    kept = phrase("driver.action.lock-kept", path=_LOCKS)
    others = tuple(row.lock.format(branch=other) for other in branches() if other != branch)
    wanted = row.lock.format(branch=branch)
    return (
        installing("dnf", "repository.lock-tool", phrase("driver.action.lock-tool"), (row.lock_tool,), why=why, seconds=10),
        Write(id="repository.lock-kept", title=kept, lane="packages", path=_LOCKS, copy_of=_LOCKS),
        Run(
            id="repository.unlock",
            title=phrase("driver.action.unlock"),
            why=why,
            lane="packages",
            argv=(*_VERSIONLOCK, "delete", *others),
            needs=("repository.lock-kept",),
            seconds=10,
        ),
        Run(
            id="repository.lock",
            title=phrase("manager.action.branch", branch=branch),
            why=phrase("manager.why.branch", branch=branch),
            lane="packages",
            # What is installed of the branch, else all that the repository has of it.
            argv=(*_VERSIONLOCK, "add", wanted),
            needs=("repository.unlock",),
            undo=(Command(argv=(*_VERSIONLOCK, "delete", wanted)),),
            seconds=10,
        ),
    )


def afterwards(case: Case) -> tuple[AnyAction, ...]:
    """Return what shows the branch that dnf keeps; undo lets go of it here, since dnf brings back no package that it may not see."""
    enabled, wanted, row = case.machine.driver.stream, _wanted_stream(case), _lock(case)
    branch = case.driver.branch or "?"
    if wanted is not None and enabled not in (None, wanted):
        argv: tuple[str, ...] = ("dnf", "-y", "module", "list", "--enabled", _MODULE)
        undo = _stream_back(enabled)
    elif row is not None and row.lock is not None:
        argv, undo = (*_VERSIONLOCK, "list"), (Command(argv=(*_VERSIONLOCK, "delete", row.lock.format(branch=branch))),)
    else:
        return ()
    title = phrase("driver.action.branch-seen", branch=branch)
    return (Run(id="driver.branch-seen", title=title, lane="packages", argv=argv, needs=("driver.install",), undo=undo, seconds=5),)


def branch_not_held(case: Case) -> tuple[Finding, ...]:
    """The packages of dnf are taken in the chosen branch, and nothing that we know keeps a later upgrade from leaving it."""
    row = case.distribution
    ours = case.driver.origin == "planned" and case.driver.source == "nvidia-repo" and row is not None and row.manager == "dnf"
    if not ours or case.repository is None or case.repository.streams or _lock(case) is not None:
        return ()
    branch = case.driver.branch or "?"
    because = (phrase("driver.because.branch-not-held", branch=branch),)
    return (driver_finding(case, "driver-branch-not-held", "warning", because, _LOCKING, branch=branch),)
