"""Cards that no bus shows: what Windows lends, what is a part of the processor, and what only the driver could name."""

from __future__ import annotations

from steps.catalog import devices as catalog
from steps.catalog import stack
from steps.detect import pci
from steps.detect.probes import Probes
from steps.detect.smi import Smi
from steps.detect.smi_values import SmiGpu
from steps.model.hardware import Accelerator, PcieLink
from steps.model.software import Os

_COMPATIBLE = "/proc/device-tree/compatible"


def cards(host: Probes, smi: Smi, *, os: Os) -> tuple[Accelerator, ...]:
    """Return the NVIDIA cards of a machine on whose bus none was found; none where the kernel showed its bus and nothing else tells."""
    if os.wsl:
        return tuple(_named(gpu, "dxgkrnl") for gpu in smi.gpus)
    row = stack.architecture_on(tuple((host.read(_COMPATIBLE) or "").split("\0")))
    if row is not None:
        return (_on_chip(row, smi),)
    # A report may hold the driver's answer, and of the bus nothing or an lspci that was cut.
    return () if pci.in_sysfs(host) else tuple(_named(gpu, "nvidia") for gpu in smi.gpus)


def _on_chip(row: stack.Architecture, smi: Smi) -> Accelerator:
    """Return the GPU of a system on a chip: it shares the processor's memory and has no address."""
    (gpu,) = smi.gpus if len(smi.gpus) == 1 else (SmiGpu(),)
    (chip,) = row.chips
    return Accelerator(
        vendor="nvidia",
        name=gpu.name or f"NVIDIA {chip}",
        chip=chip,
        architecture=row.name,
        compute_capability=row.compute_capability,
        integrated=True,
    )


def _named(gpu: SmiGpu, kernel_driver: str) -> Accelerator:
    """Return a card by what the driver says of it; one that Windows lends has no address on this side."""
    row = _row(gpu)
    return Accelerator(
        address=None if kernel_driver == "dxgkrnl" else gpu.address,
        vendor="nvidia",
        name=gpu.name or (row.name if row else f"{gpu.cut_name} …" if gpu.cut_name else None),
        chip=row.chip if row else None,
        architecture=row.architecture if row else None,
        compute_capability=gpu.compute_capability or (row.compute_capability if row else None),
        memory_bytes=gpu.memory_bytes,
        kernel_driver=kernel_driver,
        pcie=gpu.link if gpu.link != PcieLink() else None,
        bar1_bytes=None if kernel_driver == "dxgkrnl" else gpu.bar1_bytes,
        ecc=gpu.ecc,
        mig=gpu.mig,
        utilization=gpu.utilization,
        performance_state=gpu.performance_state,
        power=gpu.power,
        fan_percent=gpu.fan_percent,
        slowed=gpu.slowed or (),
    )


def _row(gpu: SmiGpu) -> catalog.GpuRow | None:
    """Return what the tables know of a card by its name, or by as much of it as the driver's table had room for."""
    if gpu.name is not None:
        return catalog.gpu_by_name(gpu.name)
    size = gpu.memory_bytes
    return catalog.gpu_by_beginning(gpu.cut_name, None if size is None else round(size / 2**30)) if gpu.cut_name else None
