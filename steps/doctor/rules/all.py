"""Every rule there is."""

from __future__ import annotations

from functools import cache

from steps.doctor.rules import (
    apt_repositories,
    apt_state,
    apt_versions,
    container,
    cuda_runtime,
    cudnn,
    disk_network,
    dkms,
    driver_mismatch,
    driver_set,
    framework,
    gaudi,
    healthy,
    kernel,
    mixed_install,
    nccl,
    nouveau,
    pcie_firmware,
    permission,
    power_thermal,
    rocm,
    secure_boot,
    sockets,
    ssh_installer,
    wsl,
    xid,
    xid_memory,
)
from steps.doctor.rules.base import Rule, rules_of


@cache
def rules() -> tuple[Rule, ...]:
    """Return the rules of all categories."""
    return rules_of(
        apt_repositories, apt_state, apt_versions,
        container, cuda_runtime, cudnn, disk_network, dkms, driver_mismatch, driver_set, framework, gaudi, healthy, kernel,
        mixed_install, nccl, nouveau, pcie_firmware, permission, power_thermal, rocm, secure_boot, sockets, ssh_installer, wsl, xid,
        xid_memory,
    )  # fmt: skip
