"""Repairs of a driver of the wrong kind: closed or open modules, another branch, a setting that keeps it out."""

from __future__ import annotations

import re
from collections.abc import Callable

from steps.catalog.repairs import flavors
from steps.catalog.stack import distribution_of
from steps.doctor.diagnosis import Step
from steps.doctor.events.bus import ProbeNotCalled
from steps.doctor.events.typed import Command
from steps.doctor.evidence import Evidence
from steps.doctor.facts import profiles
from steps.doctor.facts.cards import Card
from steps.doctor.facts.modules import Setting
from steps.doctor.repairs.base import Plan, back, install, manager_of, not_offered, person, proof, reboot, repairs, run, write
from steps.doctor.repairs.modules import images, kernel_of
from steps.doctor.rules.base import Candidate
from steps.doctor.rules.kernel import installed_branch
from steps.doctor.rules.nouveau import offered
from steps.doctor.together import all_cards, ended, newer_only, only
from steps.managers import apt_repository


@repairs("gpu-needs-open-module")
def to_open(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the same driver with the open modules."""
    other = only(seen, "no")
    if other is not None:
        return _apart(other)
    return _flavored(seen, open_wanted=True)


@repairs("gpu-unsupported-by-open-module")
def to_closed(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the same driver with the closed modules, or the last branch that drives the card where this one no longer does."""
    other, driver = only(seen, "required"), installed_branch(seen)
    if other is not None:
        return _apart(other)
    last = next((card.row.last_driver_branch for card in all_cards(seen) if card.row and driver and ended(card, driver.value)), None)
    return _branch(seen, last) if last else _flavored(seen, open_wanted=False)


def _apart(other: Card) -> Plan:
    """Return what a person decides where the cards want different drivers: any change takes the other card's away."""
    return Plan(steps=(person("choose-card", "bringup", "check", other=other.name or "?"),), verify=proof("smi"))


def _flavored(seen: Evidence, *, open_wanted: bool) -> Plan:
    manager, key = manager_of(seen), "flavor-open" if open_wanted else "flavor-closed"
    if manager == "dnf" and seen.packages.named(r"akmod-nvidia.*"):
        kernel = kernel_of(seen)
        macro = write(key, _MACROS, _macros(seen.host.read(_MACROS) or "", open_wanted=open_wanted))
        build = run(
            "build-akmod", "akmods", "--force", "--rebuild", *(("--kernels", kernel) if kernel else ()), quiet=720, kernel=kernel or "?"
        )
        return Plan(steps=(macro, build, *images(seen), reboot()), verify=proof("smi"))
    swaps = {
        row.name: other if re.search(r"-\d{3}\b", row.name) else f"{other}={row.version}"
        for row in seen.packages.rows
        if row.installed and (other := _other_flavor(row.name, open_wanted=open_wanted))
    }
    if manager != "apt" or not swaps:
        return Plan(steps=(person(key, "bringup", "apply"), reboot()), verify=proof("smi"))
    change = install(key, manager, *dict.fromkeys(swaps.values()), may_remove=tuple(swaps))
    return Plan(steps=(change, *images(seen), reboot()), verify=proof("smi"))


_MACROS = "/etc/rpm/macros.nvidia-kmod"


def _macros(text: str, *, open_wanted: bool) -> str:
    """Return the macros that RPM Fusion's module is built by: its spec asks whether one is defined, never for its value.

    Without either it looks at the cards, and takes the open modules wherever a card may have them.
    """
    others = [line for line in text.splitlines() if not re.match(r"\s*%(global\s+)?_with(out)?_kmod_nvidia_(open|detect)\b", line)]
    mine = "%_with_kmod_nvidia_open 1" if open_wanted else "%_without_kmod_nvidia_detect 1"
    return "\n".join((*others, mine)) + "\n"


_READY = re.compile(r"(?P<branch>linux-(?:modules|objects)-nvidia-\d+(?:-server)?)(?P<open>-open)?-(?P<kernel>(?!open\b|server\b).+)")


def _other_flavor(name: str, *, open_wanted: bool) -> str | None:
    """Return the package that stands for this one with the other kind of modules, or `None`; Ubuntu's ready modules are such too."""
    ready = _READY.fullmatch(name)
    if ready and (ready["open"] is None) is open_wanted:
        return f"{ready['branch']}{'-open' if open_wanted else ''}-{ready['kernel']}"
    for row in flavors():
        mine, other = (row.closed, row.open) if open_wanted else (row.open, row.closed)
        found = re.fullmatch(re.escape(mine).replace(r"\{branch\}", r"(?P<branch>\d+)"), name)
        if found:
            return other.replace("{branch}", found.groupdict().get("branch") or "")
    return None


@repairs("gpu-needs-legacy-driver", "transitional-package-replaces-legacy-driver")
def legacy(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the last branch that drives the card, kept there by a pin."""
    branch = str(candidate.params.get("branch") or candidate.params.get("named") or "")
    branch = branch.partition(".")[0]
    if not branch.isdigit():
        return Plan(steps=(person("legacy-by-hand", "bringup", "apply", branch="?"),), verify=proof("smi"))
    return _branch(seen, branch)


def _branch(seen: Evidence, branch: str) -> Plan:
    """Return the change to a branch; a person's where another card wants a newer one, or where the packages' names are not known."""
    other = newer_only(seen, branch)
    if other is not None:
        return _apart(other)
    manager = manager_of(seen)
    present = tuple(dict.fromkeys(row.name for row in seen.packages.driver()))
    row = distribution_of(seen.system.id, seen.system.version) if manager == "apt" else None
    names: dict[str, tuple[str, ...]] = {"ubuntu": (f"nvidia-driver-{branch}",), "debian": (f"nvidia-tesla-{branch}-driver",)}
    name = names.get(seen.system.id or "") if manager == "apt" else None
    if name and ((row is not None and branch not in row.archive) or not_offered(seen, manager, *name)):
        # The archive of this release has no such branch.
        name = None
    if manager == "dnf" and (seen.system.id == "fedora" or seen.packages.named(r"akmod-nvidia.*")):
        name = (f"akmod-nvidia-{branch}xx", f"xorg-x11-drv-nvidia-{branch}xx-cuda")
    if not name:
        return Plan(steps=(person("legacy-by-hand", "bringup", "apply", branch=branch), reboot()), verify=proof("smi"))
    pin = apt_repository.branch_pin(branch)
    kept = (write("pin-branch", pin.path, pin.text or "", branch=branch),) if manager == "apt" else ()
    change = install("legacy", manager, *name, may_remove=present, refresh=manager == "apt", branch=branch)
    return Plan(steps=(*kept, change, *images(seen), reboot()), verify=proof("smi"))


_BLACKLIST = "/etc/modprobe.d/bringup-blacklist.conf"


@repairs("in-tree-driver-owns-gpu")
def in_tree(seen: Evidence, candidate: Candidate) -> Plan:
    """Return what keeps the kernel's own driver from the card; where no module of NVIDIA's would follow it, a driver instead."""
    if not _follows(seen):
        # Without one the card would have no driver at all; the installation keeps the other out itself.
        return Plan(steps=(person("install-driver", "bringup", "apply"),), verify=proof("pci"))
    driver = str(candidate.params.get("driver", ""))
    if candidate.variant == "late" or not re.fullmatch(r"\w+", driver):
        return Plan(steps=(*images(seen), reboot()), verify=proof("pci"))
    # An earlier repair may have kept another of the kernel's own drivers out by the same file.
    lines = (seen.host.read(_BLACKLIST) or "# The card belongs to NVIDIA's driver.").splitlines()
    text = "\n".join(dict.fromkeys((*lines, f"blacklist {driver}", f"options {driver} modeset=0", "")))
    kept_out = write("blacklist", _BLACKLIST, text, driver=driver)
    return Plan(steps=(kept_out, *images(seen), reboot()), verify=proof("pci"))


def _follows(seen: Evidence) -> bool:
    """Return whether a module of NVIDIA's is seen that can take the card."""
    built = any(line.module.startswith("nvidia") and line.state == "installed" for line in seen.modules.dkms or ())
    there = seen.modules.files or seen.versions.on_disk or seen.has(ProbeNotCalled) or seen.packages.driver("module")
    return bool(built or there or any(True for _ in offered(seen)))


@repairs("driver-blocked-by-prime-profile")
def prime(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the profile that lets the driver load."""
    asked = seen.host.run(("prime-select", "query"))
    other = None if asked.stdout.strip() else profiles.back(seen.modules.settings, seen.all(Command), seen.host.read)
    if other is not None:
        # The file is written anew at each start: its program has to be told.
        return Plan(steps=(person("prime", *other), *images(seen), reboot()), verify=proof("smi"))
    if asked.status == 127:
        away = _remarked(seen, "prime-alias", lambda one: one.verb == "alias" and one.rest == "off")
        return Plan(steps=(*(away or (person("prime", "prime-select", "on-demand"),)), *images(seen), reboot()), verify=proof("smi"))
    profile = asked.stdout.strip() or "intel"
    switch = run("prime", "prime-select", "on-demand", undo=(back("prime-select", profile if profile.isalpha() else "intel"),))
    return Plan(steps=(switch, *images(seen), reboot()), verify=proof("smi"))


_SETTINGS = re.compile(r"(?:/etc|/usr/lib|/lib)/modprobe\.d/[\w.+-]+\.conf")


def _remarked(seen: Evidence, key: str, wanted: Callable[[Setting], bool]) -> tuple[Step, ...]:
    """Return what comments modprobe's settings out, file by file; a person's where such a file was not seen itself."""
    files: dict[str, set[str]] = {}
    for one in filter(wanted, seen.modules.settings):
        if _SETTINGS.fullmatch(one.place.source):
            files.setdefault(one.place.source, set()).add(one.place.text)
    return tuple(_without(seen, key, path, lines) for path, lines in files.items())


def _without(seen: Evidence, key: str, path: str, settings: set[str]) -> Step:
    text = seen.host.read(path)
    if text is None:
        return person(key, path=path)
    left = (f"# bringup: {line}" if line.strip() in settings else line for line in text.splitlines())
    return write(key, path, "\n".join(left) + "\n")


@repairs("vfio-owns-gpu")
def vfio(seen: Evidence, candidate: Candidate) -> Plan:
    """Return what gives the card back to its driver, after a question: it may well be meant for a virtual machine."""
    away = _remarked(seen, "vfio-away", _hands_over)
    if not away:
        return Plan(steps=(person("ask-vfio"), person("vfio-by-hand"), reboot()), verify=proof("pci"))
    return Plan(steps=(person("ask-vfio"), *away, *images(seen), reboot()), verify=proof("pci"))


def _hands_over(one: Setting) -> bool:
    """Return whether a setting gives cards to vfio-pci, or keeps NVIDIA's driver from them."""
    return bool(re.search(r"\bvfio[-_]pci\b", f"{one.module} {one.rest}")) or (one.verb == "blacklist" and one.module.startswith("nvidia"))
