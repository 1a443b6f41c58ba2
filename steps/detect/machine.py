"""From a host to the facts about a machine."""

from __future__ import annotations

from steps.detect import accelerators as cards
from steps.detect import (
    cpu,
    disks,
    driver,
    environments,
    firmware,
    gaps,
    links,
    memory,
    networks,
    nvml,
    packages,
    pci,
    smi,
    system,
    toolkits,
    tools,
)
from steps.detect.probes import Probes
from steps.host.base import Host
from steps.model.machine import Machine


def detect(host: Host) -> Machine:
    """Return everything that `host` tells about its machine; what it does not tell is `None` or has a finding in `gaps`."""
    probes = Probes(host)
    try:
        return _detect(probes)
    finally:
        probes.close()


def _detect(host: Probes) -> Machine:
    host.ahead(*system.ASKED, *memory.ASKED, *firmware.ASKED)
    installed = packages.packages(host)
    os = system.system(host, installed)
    wsl = os.wsl is True
    bus = pci.devices(host)
    nvidia = wsl or any(device.vendor == "10de" for device in bus) or bool(installed.matching(r"nvidia-.*"))
    said = nvml.driver_says(host) if nvidia or host.host.rehearsal else smi.Smi()
    found = cards.accelerators(host, bus, said, wsl=wsl)
    driven = driver.driver(host, found, said, installed, wsl=wsl)
    main_memory = memory.memory(host)
    return Machine(
        os=os,
        firmware=firmware.firmware(host, found),
        cpu=cpu.cpu(host, bare_metal=os.virtualization == "none"),
        memory=main_memory,
        disks=disks.disks(host, virtual_machine=os.virtualization not in (None, "none")),
        networks=networks.networks(host),
        accelerators=found,
        links=links.links(host, found, bus, ask=said.trouble is None and said.installed is not False),
        driver=driven,
        toolkits=toolkits.toolkits(host, installed),
        cudnn=toolkits.cudnn(host, installed),
        nccl=toolkits.nccl(host, installed),
        environments=environments.environments(host),
        tools=tools.tools(host, installed),
        library_path=toolkits.library_path(host),
        headers=system.headers(host, os.kernel),
        held=packages.held(host),
        gaps=gaps.gaps(host, os=os, memory=main_memory, cards=found, driver=driven, smi=said),
    )
