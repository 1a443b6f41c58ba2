"""Repairs of a driver whose halves, packages or owners do not fit each other."""

from __future__ import annotations

import re

from steps.catalog.stack import branches
from steps.catalog.versions import number
from steps.compat import run_file_plan
from steps.detect.run_file import run_file
from steps.doctor import numbers
from steps.doctor.diagnosis import Step
from steps.doctor.evidence import Evidence
from steps.doctor.facts.packages import Row, role
from steps.doctor.repairs.base import (
    Plan,
    as_planned,
    aside,
    back,
    install,
    manager_of,
    not_offered,
    person,
    proof,
    reboot,
    remove,
    repairs,
    run,
)
from steps.doctor.repairs.halves import archive, completed, half
from steps.doctor.repairs.modules import afterwards, built, images, kernel_of, reinstalled
from steps.doctor.repairs.plain import is_path
from steps.doctor.rules.base import Candidate
from steps.model.action import RemovePath
from steps.model.base import phrase


@repairs("reboot-pending-after-driver-update")
def pending(seen: Evidence, candidate: Candidate) -> Plan:
    """Return what loads the new module: everything on disk is right already."""
    return Plan(steps=(afterwards(seen),), verify=proof("smi"))


@repairs("driver-library-mismatch")
def mismatch(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the reboot, which mostly is enough, and the packages once more for where it is not."""
    return Plan(steps=(reboot(), *reinstalled(seen)), verify=proof("smi"))


@repairs("partial-driver-upgrade")
def one_version(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the packages that lag, in the newest version that another one has already."""
    manager = manager_of(seen)
    held = [name for name in seen.packages.held or () if role(name)]
    free = tuple(run("unhold", "apt-mark", "unhold", name, undo=(back("apt-mark", "hold", name),), package=name) for name in held)
    lagging = _lagging(seen)
    if manager is None or not lagging:
        command = {"apt": ("apt-get", "full-upgrade"), "dnf": ("dnf", "distro-sync"), "pacman": ("pacman", "-Syu")}.get(manager or "", ())
        return Plan(steps=(*free, person("upgrade-all", *command), reboot()), verify=proof("smi"))
    names = tuple(f"{name}={version}" if manager == "apt" else name for name, version in lagging.items())
    steps = (*free, install("same-version", manager, *names), *images(seen), afterwards(seen))
    return Plan(steps=steps, verify=proof("smi"))


def _lagging(seen: Evidence) -> dict[str, str]:
    """Return the driver's packages that are older than the newest of them, with the version that they should have."""
    found = seen.packages.driver()
    newest: Row | None = None
    for row in found:
        if newest is None or numbers.newer(row.driver or "", newest.driver or ""):
            newest = row
    if newest is None:
        return {}
    foreign = ("i386", "armhf")
    return {
        f"{row.name}:{row.arch}" if row.arch in foreign else row.name: _as_new(row, newest)
        for row in found
        if not numbers.agree(row.driver or "", newest.driver or "")
    }


def _as_new(row: Row, newest: Row) -> str:
    """Return the version of a package that goes with the newest one's.

    NVIDIA builds `cuda-drivers` by itself, with a revision of its own; all others come from one source with the driver.
    """
    apart = [name.startswith("cuda-drivers") for name in (row.name, newest.name)]
    if apart[0] == apart[1] or not row.driver or not newest.driver:
        return newest.version
    return row.version.replace(row.driver, newest.driver)


@repairs("module-from-other-install")
def one_owner(seen: Evidence, candidate: Candidate) -> Plan:
    """Return what takes NVIDIA's installer away with its own tool, and gives the packages their files back."""
    uninstaller = next((one.value for one in seen.modules.leftovers if one.value.endswith("nvidia-uninstall")), None)
    place = next((told.place.text for told in candidate.facts if "/kernel/drivers/video/nvidia.ko" in told.place.text), "")
    path = re.search(r"/lib/modules/[\w.+~-]+/kernel/drivers/video/nvidia\.ko(?:\.\w+)?(?=\s|$)", place)
    there = run_file(seen.host, str(candidate.params.get("loaded", "")), uninstaller) if uninstaller else None
    if there:
        away: tuple[Step, ...] = (
            as_planned(run_file_plan.keeps(there), *run_file_plan.keeping(there)),
            as_planned(phrase("driver.action.uninstall"), run_file_plan.removing(there)),
        )
    elif path:
        away = _indexed(path[0].split("/")[3], aside("module-away", path[0]))
    else:
        away = (person("uninstall", "nvidia-uninstall"),)
    return Plan(steps=(*away, *reinstalled(seen), *_build(seen), *images(seen), afterwards(seen)), verify=proof("smi"))


def _indexed(kernel: str, away: Step) -> tuple[Step, ...]:
    """Return what takes a module away, with the kernel's index made anew after that, and by an undo after it came back."""
    again = run("depmod", "depmod", kernel, kernel=kernel)
    return (run("depmod", "depmod", kernel, undo=(back("depmod", kernel),), kernel=kernel), away, again)


def _build(seen: Evidence) -> tuple[Step, ...]:
    """Return the module's build where DKMS has it; the packages that were installed again bring it otherwise."""
    dkms = any(line.module.startswith("nvidia") for line in seen.modules.dkms or ())
    return built(seen, kernel_of(seen)) if dkms else ()


@repairs("userspace-from-other-install")
def one_user_space(seen: Evidence, candidate: Candidate) -> Plan:
    """Return what takes the stranger's files out of the way; inside somebody's environment only they do."""
    path = next((told.place.text for told in candidate.facts if is_path(told.place.text)), "")
    if _STRANGER.fullmatch(path) and "/envs/" not in path and "site-packages" not in path:
        away = (aside("stranger-away", one) for one in _with_library(seen, path))
        # The loader's list is made anew after the files went, and by an undo after they came back.
        return Plan(steps=(run("ldconfig", "ldconfig", undo=(back("ldconfig"),)), *away, run("ldconfig", "ldconfig")), verify=proof("smi"))
    return Plan(steps=(person("stranger-first", path=path or "?"), *reinstalled(seen, "library", "tool")), verify=proof("smi"))


_STRANGER = re.compile(r"/(?:usr/local|opt)/\S*/(?:nvidia-smi|lib(?:cuda|nvidia-[\w-]+)\.so[\w.]*)")
"""A file of a driver where no package of the system puts one."""


def _with_library(seen: Evidence, path: str) -> tuple[str, ...]:
    """Return a stranger's file with what lies beside it of the same library: ldconfig would make its link anew from those."""
    if ".so" not in path or seen.rehearsal:
        return (path,)
    beside = seen.host.glob(f"{path.partition('.so')[0]}.so*")
    return tuple(dict.fromkeys((path, *(one for one in beside if _STRANGER.fullmatch(one)))))


@repairs("driver-utilities-package-missing")
def tools(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the package with nvidia-smi, in the version of what is here."""
    manager = manager_of(seen)
    here = next((row for row in seen.packages.rows if row.installed and role(row.name) in ("library", "module", "firmware")), None)
    branch = re.search(r"-(\d{3})(-server)?\b", here.name) if here else None
    gone = next((row.name for row in seen.packages.rows if row.state[1:2] == "c" and _TOOLS.fullmatch(row.name)), None)
    if manager == "apt":
        # Settings of earlier branches stay behind: which branch is wanted now, what is installed tells.
        name = f"nvidia-utils-{branch[1]}{branch[2] or ''}" if branch else gone or _unnumbered(seen)
    else:
        # RPM Fusion's packages have names of their own, those of an older branch its number too.
        fusion = next(iter(seen.packages.named(r"xorg-x11-drv-nvidia(-\d+xx)?(-libs)?")), None)
        rpm = f"{fusion.name.removesuffix('-libs')}-cuda" if fusion else "nvidia-driver-cuda"
        name = {"dnf": rpm, "pacman": "nvidia-utils"}.get(manager or "", "nvidia-utils")
    # Where the newest is of another version than the rest it would not go with it.
    fits = here is not None and bool(branch or gone or name == _OF_NVIDIA)
    exact = f"{name}={here.version}" if manager == "apt" and here and fits else name
    return Plan(steps=(install("tools", manager, exact),), verify=proof("smi"))


_TOOLS, _OF_NVIDIA = re.compile(r"nvidia-utils|nvidia-smi|nvidia-driver-cuda"), "nvidia-driver-cuda"


def _unnumbered(seen: Evidence) -> str:
    """Return the package of nvidia-smi by Debian's name for it where its archive is in use, else by that of NVIDIA's."""
    return "nvidia-smi" if seen.system.id == "debian" and not not_offered(seen, "apt", "nvidia-smi") else _OF_NVIDIA


@repairs("driver-package-file-conflict")
def file_conflict(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the removal of the package that has the file, then what was cut off."""
    manager, package = manager_of(seen), str(candidate.params.get("package", "?")).partition(":")[0]
    if not re.fullmatch(r"[a-z0-9][a-z0-9.+-]+", package) or role(package) is None or candidate.variant == "both":
        return Plan(steps=(person("which-driver", package=package), completed(manager)), verify=proof("packages", manager))
    if manager == "apt" and not half(seen):
        steps: tuple[Step, ...] = (remove("other-branch-away", manager, package),)
        return Plan(steps=(*steps, completed(manager)), verify=proof("packages", manager))
    # dpkg's own tool: while a package is half unpacked, apt refuses every transaction that does not mend all of it.
    steps = (*_forced(seen, package), completed(manager)) if manager == "apt" else (remove("other-branch-away", manager, package),)
    return Plan(steps=steps, verify=proof("packages", manager))


_ARCHIVES = "/var/cache/apt/archives"


def _forced(seen: Evidence, package: str) -> tuple[Step, ...]:
    """Return the removal of a package on which others may rest, its file kept before; a person's where it is not known which that is.

    Its own file counts where apt has it; else it is fetched, and the run stops before the removal where it cannot be.
    """
    rows = [row for row in seen.packages.rows if row.name == package and row.installed]
    command = ("dpkg", "--remove", "--force-depends", package)
    kept = archive(seen, rows[0]) if len(rows) == 1 else None
    if len(rows) != 1 or (kept is None and rows[0].arch is None):
        return (person("other-branch-away", *command, packages=package),)
    (row,) = rows
    path = kept or f"{_ARCHIVES}/{row.name}_{row.version.replace(':', '%3a')}_{row.arch}.deb"
    away = run("other-branch-away", *command, undo=(back("dpkg", "--install", "--force-overwrite", path),), packages=package)
    if kept:
        return (away,)
    fetch = ("apt-get", "download", f"{row.name}:{row.arch}={row.version}")
    fetched = run("keep-package", "env", f"--chdir={_ARCHIVES}", *fetch, undo=(RemovePath(path=path),), package=package)
    return (fetched, away)


@repairs("conflicting-driver-branch-blocks-install")
def one_branch(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the wanted branch in the other one's place, in one transaction: where apt refuses it, the driver that runs stays."""
    manager, wanted = manager_of(seen), str(candidate.params.get("wanted", ""))
    named = re.search(r"(?<![\d.])(\d{3})(?![\d])", wanted)
    branch = named[1] if named else None
    rows = [row for row in seen.packages.driver() if row.driver and branch and numbers.branch(row.driver) != branch]
    # A package of NVIDIA's that holds apt at a branch goes with that branch.
    rows += [row for row in seen.packages.named(rf"nvidia-driver-pinning-(?!{branch}\b)\d{{3}}\S*") if rows]
    others = tuple(dict.fromkeys(row.name for row in rows))
    kind = next((found[1] for name in others if (found := re.fullmatch(r"nvidia-driver-\d{3}((?:-server)?(?:-open)?)", name))), None)
    name = f"nvidia-driver-{branch}{kind}"
    if manager != "apt" or branch is None or kind is None or not_offered(seen, manager, name):
        return Plan(
            steps=(person("which-branch", wanted=wanted), person("branch-again", "bringup", "apply")), verify=proof("packages", manager)
        )
    swap = install("branch-swap", manager, name, *(f"{other}-" for other in others), may_remove=others, branch=branch)
    return Plan(steps=(swap, *images(seen), afterwards(seen)), verify=proof("packages", manager))


@repairs("multiarch-driver-version-skew")
def both_architectures(seen: Evidence, candidate: Candidate) -> Plan:
    """Return both architectures of the package in one version."""
    name, manager = str(candidate.params.get("package", "?")), manager_of(seen)
    rows = [row for row in seen.packages.rows if row.name == name and row.arch]
    newest = max(rows, key=lambda row: numbers.parts(row.driver or row.version), default=None)
    if manager != "apt" or newest is None or len({row.arch for row in rows}) < 2:
        return Plan(steps=(completed(manager), person("both-architectures", package=name)), verify=proof("packages", manager))
    names = tuple(f"{row.name}:{row.arch}={newest.version}" for row in rows)
    # What dpkg left half-way is completed by a step of its own: no undo makes it half-done again, and that is said.
    waiting = (completed(manager),) if half(seen) else ()
    return Plan(steps=(*waiting, install("both-architectures", manager, *names, package=name)), verify=proof("packages", manager))


@repairs("linux-driver-installed-in-wsl")
def windows_driver(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the removal of the Linux driver: in WSL the driver of Windows serves."""
    names = tuple(dict.fromkeys(row.name for row in seen.packages.rows if row.installed and role(row.name)))
    if not names:
        return Plan(steps=(person("wsl-remove-unknown"),), verify=proof("smi"))
    return Plan(steps=(remove("wsl-remove", manager_of(seen), *names),), verify=proof("smi"))


# --- a release that does not build ------------------------------------------------------------------


@repairs("driver-does-not-build-on-kernel")
def other_release(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the newest release of the branch first, where one is out that is not known to end before the kernel."""
    version, kernel = str(candidate.params.get("version", "")), str(candidate.params.get("kernel", ""))
    row = branches().get(numbers.branch(version)) if re.fullmatch(r"\d{3}(\.\d+)+", version) else None
    newer: tuple[Step, ...] = ()
    if row is not None and row.latest and candidate.params.get("module") == "nvidia" and numbers.newer(row.latest, version):
        last, line = row.kernel_max_patched or row.kernel_max, re.match(r"\d+\.\d+", kernel)
        if last is None or line is None or number(line[0]) <= number(last):
            newer = (person("newer-release", *_upgrade(seen, row.name), branch=row.name, latest=row.latest),)
    return Plan(steps=(*newer, person("older-kernel"), person("branch-that-builds", "bringup", "apply")), verify=proof("dkms"))


def _upgrade(seen: Evidence, branch: str) -> tuple[str, ...]:
    """Return the command that upgrades the installed packages of a branch; our own where these are not known."""
    names = tuple(dict.fromkeys(row.name for row in seen.packages.driver() if row.driver and numbers.branch(row.driver) == branch))
    start = {"apt": ("apt-get", "install", "--only-upgrade"), "dnf": ("dnf", "upgrade")}.get(manager_of(seen) or "")
    return (*start, *names) if start and names else ("bringup", "apply")
