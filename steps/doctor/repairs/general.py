"""The repair that all diagnoses of one kind share, where none of their own is written."""

from __future__ import annotations

from collections.abc import Mapping

from steps.catalog.diagnoses import FixClass
from steps.doctor.diagnosis import Step
from steps.doctor.evidence import Evidence
from steps.doctor.repairs.base import REBOOT, SMI, Plan, step


def shared(seen: Evidence, kind: FixClass) -> Plan:
    """Return the repair of a kind: for some there is a command everywhere, for the others the step says what to do."""
    if kind == "none":
        return Plan()
    return Plan(steps=_STEPS.get(kind) or _package_steps(seen, kind), verify=SMI)


_STEPS: Mapping[FixClass, tuple[Step, ...]] = {
    "reboot": (REBOOT,),
    "wait": (step("wait"),),
    "hardware": (step("hardware"),),
    "firmware": (step("firmware"),),
    "network": (step("network"),),
    "free-space": (step("free-space", "df", "-h"),),
    "settings": (step("settings"),),
    "env-repair": (step("environment"),),
    "container-repair": (step("container"),),
    "enroll-key": (step("enroll-key"), REBOOT),
    "reset-gpu": (step("reset-gpu", "nvidia-smi", "--gpu-reset"),),
    "reload-module": (step("reload-module", "modprobe", "nvidia_uvm"),),
}


def _package_steps(seen: Evidence, kind: FixClass) -> tuple[Step, ...]:
    """Return the steps that depend on the package manager."""
    if kind == "rebuild-module":
        return (step("rebuild-module", "dkms", "autoinstall"), REBOOT)
    if kind in ("switch-branch", "switch-flavor"):
        return (step(kind), REBOOT)
    if kind == "repo-repair":
        return (step("repository"), *((step("update", "apt-get", "update"),) if seen.packages.manager == "apt" else ()))
    if seen.packages.manager == "apt":
        return (
            step("finish-dpkg", "dpkg", "--configure", "-a"),
            step("fix-broken", "apt-get", "--fix-broken", "install"),
            step("reinstall-same"),
        )
    return (step("reinstall-same"),)
