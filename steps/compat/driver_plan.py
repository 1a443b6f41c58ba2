"""From a chosen driver to the actions that bring it: headers, source, packages, key, reboot."""

from __future__ import annotations

from steps import resources
from steps.catalog.linux import in_tree_names
from steps.compat import driver_packages, driver_sources, extra_sources, mok_plan, run_file_plan
from steps.compat.case import Case
from steps.compat.next_boot import kernel_by_itself
from steps.compat.system_rules import signed
from steps.managers import apt_repository
from steps.model.action import (
    KEY,
    NEIGHBOURS,
    AnyAction,
    Command,
    ModuleBuilt,
    Reboot,
    Run,
    Service,
    Succeeds,
    installing,
)
from steps.model.base import phrase
from steps.model.plan import Target


def plan(case: Case, target: Target) -> tuple[AnyAction, ...]:
    """Return what installs the chosen driver; empty when the driver is left alone."""
    if case.driver.origin != "planned" or not case.gpus or case.wsl or case.contained:
        return ()
    names = driver_packages.packages(case)
    if not names:
        return ()
    kernel = target.kernel or case.machine.os.kernel
    install = _install(case, names, kernel)
    return (
        *_neighbours(case, target),
        *_headers(case, kernel),
        *extra_sources.plan(case),
        *driver_sources.plan(case),
        *_uninstall(case),
        *_stillness(case, names),
        install,
        *driver_sources.afterwards(case),
        *_key(case, target),
        *_afterwards(case, target),
        *_fabric(case, target),
    )


def _stillness(case: Case, names: tuple[str, ...]) -> tuple[AnyAction, ...]:
    """Return what keeps nightly upgrades off a driver whose module is built here."""
    manager = case.distribution.manager if case.distribution else "apt"
    prebuilt = any(name.startswith("linux-modules-nvidia") for name in names)
    return (apt_repository.hold_still(),) if manager == "apt" and not prebuilt else ()


def _neighbours(case: Case, target: Target) -> tuple[AnyAction, ...]:
    """Return what sees, before anything is changed, whose work would end: needed only where a driver is loaded."""
    if target.root != "/" or case.machine.driver.kernel_version is None:
        return ()
    argv = (*resources.self_command(), "verify", "--neighbours")
    title, why = phrase("driver.action.neighbours"), phrase("driver.why.neighbours")
    return (Run(id=NEIGHBOURS, title=title, why=why, lane="packages", argv=argv, outside=True, seconds=3),)


def _headers(case: Case, kernel: str | None) -> tuple[AnyAction, ...]:
    """Return what brings the kernel's headers: without them DKMS builds nothing and reports success."""
    coming = kernel_by_itself(case.machine)
    names = tuple(dict.fromkeys(name for one in (kernel, coming) for name in driver_packages.headers(case, one)))
    if not names:
        return ()
    title, why = phrase("driver.action.headers", kernel=kernel or "?"), phrase("driver.why.headers")
    manager = case.distribution.manager if case.distribution else "apt"
    return (
        installing(
            manager,
            "driver.headers",
            title,
            names,
            why=why,
            refresh=manager == "apt",
            download_bytes=14_000_000,
            disk_bytes=110_000_000,
            seconds=40,
        ),
    )


def _uninstall(case: Case) -> tuple[AnyAction, ...]:
    """Return what takes away a driver that NVIDIA's installer wrote: it would shadow the packages."""
    there = case.machine.driver.run_file
    return (*run_file_plan.keeping(there), run_file_plan.removing(there)) if there else ()


def _install(case: Case, names: tuple[str, ...], kernel: str | None) -> AnyAction:
    """Return what installs the driver; it is done when the packages are there and a module was built for the kernel."""
    manager = case.distribution.manager if case.distribution else "apt"
    branch = f"{case.driver.branch or '?'}{'-server' if case.driver.server else ''}"
    title = phrase(f"driver.action.install-{case.driver.flavor or 'proprietary'}", branch=branch)
    why = phrase("driver.why.ready" if driver_packages.prebuilt(case) else "driver.why.built")
    built = ModuleBuilt(module="nvidia", kernel=driver_packages.build_kernel(case, kernel))
    tools = ("mokutil",) if case.machine.firmware.secure_boot == "enabled" and not signed(case) and manager == "apt" else ()
    ready, apt = driver_packages.prebuilt(case), manager == "apt"
    return installing(
        manager,
        "driver.install",
        title,
        (*names, *tools),
        why=why,
        needs=(apt_repository.BRANCH,) if driver_sources.pinned(case) else (),
        may_remove=driver_packages.REPLACED if apt and case.machine.driver.packages else (),
        may_downgrade=apt_repository.DRIVER_PACKAGES if driver_packages.older(case) else (),
        refresh=apt and case.driver.source == "distro",
        # The two others bring modules ready, or build them where the probe does not look.
        done_when=(built,) if manager in ("apt", "dnf") else (),
        download_bytes=420_000_000,
        disk_bytes=1_400_000_000,
        seconds=120 if ready and apt else 420,
        quiet_seconds=720 if apt else None,
        quiet_why=phrase("driver.quiet.dkms") if apt else "",
    )


def _key(case: Case, target: Target) -> tuple[AnyAction, ...]:
    """Return what enrols the key that signs modules built here; a person confirms it at the console after the reboot."""
    row = case.distribution
    if case.machine.firmware.secure_boot != "enabled" or signed(case) or target.root != "/" or row is None or row.key_certificate is None:
        return ()
    return (
        mok_plan.enrolment(
            row.key_certificate,
            case.machine.firmware.queued_keys,
            phrase("driver.action.key"),
            phrase("driver.why.key"),
            needs=("driver.install",),
        ),
        Run(
            id="driver.card",
            title=phrase("driver.action.card"),
            why=phrase("driver.why.card"),
            lane="packages",
            argv=(*resources.self_command(), "report", "--mok"),
            needs=(KEY,),
            outside=True,
            optional=True,
            seconds=1,
        ),
    )


def _afterwards(case: Case, target: Target) -> tuple[AnyAction, ...]:
    """Return what brings the new module into the kernel: a reboot when another one is in the way, else loading it."""
    if target.root != "/":
        return ()
    if _needs_reboot(case):
        return (
            Reboot(
                id="driver.reboot",
                title=phrase("driver.action.reboot"),
                reason=phrase("driver.why.reboot-key" if _key(case, target) else "driver.why.reboot"),
                needs=("driver.install",),
                seconds=180,
            ),
        )
    works = Succeeds(argv=("nvidia-smi", "-L"))
    return (
        Run(
            id="driver.load",
            title=phrase("driver.action.load"),
            why=phrase("driver.why.load"),
            lane="packages",
            argv=("modprobe", "nvidia"),
            needs=("driver.install",),
            done_when=(works,),
            seconds=5,
        ),
    )


def _needs_reboot(case: Case) -> bool:
    """Return whether another module is in the way, or a key waits to be confirmed."""
    loaded = case.machine.driver.kernel_version is not None or any(gpu.card.kernel_driver in in_tree_names() for gpu in case.gpus)
    return loaded or case.machine.firmware.secure_boot == "enabled"


def _fabric(case: Case, target: Target) -> tuple[AnyAction, ...]:
    """Return the fabric manager of boards with NVSwitch: without it CUDA refuses to start there (error 802)."""
    name = driver_packages.fabric_manager(case)
    if name is None:
        return ()
    title, why = phrase("driver.action.fabric"), phrase("driver.why.fabric")
    manager = case.distribution.manager if case.distribution else "apt"
    found: list[AnyAction] = [
        installing(manager, "driver.fabric", title, (name,), why=why, needs=("driver.install",), download_bytes=4_000_000, seconds=15)
    ]
    unit = "nvidia-fabricmanager.service"
    if target.root == "/" and not _needs_reboot(case):
        found.append(
            Service(
                id="driver.fabric-service",
                title=phrase("driver.action.fabric-start"),
                why=why,
                lane="packages",
                unit=unit,
                needs=("driver.load",),
                seconds=10,
            )
        )
    else:
        enabled = Succeeds(argv=("systemctl", "is-enabled", "--quiet", unit))
        back = Command(argv=("systemctl", "disable", unit))
        argv = ("systemctl", "enable", unit)
        found.append(
            Run(
                id="driver.fabric-service",
                title=phrase("driver.action.fabric-enable"),
                why=why,
                lane="packages",
                argv=argv,
                done_when=(enabled,),
                undo=(back,),
                seconds=3,
            )
        )
    return tuple(found)
