"""Where a driver's module may lie on disk: apart from what is detected, for a runner needs nothing else of that."""

from __future__ import annotations

PLACES = (
    "updates/dkms",
    "updates",
    "extra",
    "extra/*",
    "extra/drivers/video/nvidia",
    "extramodules",
    "weak-updates",
    "weak-updates/*",
    "weak-updates/drivers/video/nvidia",
    "kernel/*",
    "kernel/drivers/*",
    "kernel/drivers/*/*",
    "kernel/drivers/video/nvidia",
    "video",
)
"""Where a driver's module may lie below `/lib/modules/<kernel>`: DKMS, NVIDIA's installer, kmod packages, and the ready modules of
NVIDIA's repository for dnf (`kmod_module_path` in NVIDIA/yum-packaging-precompiled-kmod kmod-nvidia.spec: extra/drivers/video/nvidia).
Arch's packages have theirs in `extramodules` (modinfo in a report of its users: /lib/modules/7.0.10-arch1-1/extramodules/nvidia.ko.zst)."""
