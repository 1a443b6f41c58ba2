"""From a host to the facts about a machine."""

from __future__ import annotations

from steps.detect import accelerators as cards
from steps.detect import cpu, disks, driver, environments, firmware, links, memory, networks, packages, pci, smi, system, toolkits, tools
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
    said = smi.smi(host) if nvidia or host.host.rehearsal else smi.Smi()
    found = cards.accelerators(host, bus, said, wsl=wsl)
    virtual = os.virtualization not in (None, "none")
    return Machine(
        os=os,
        firmware=firmware.firmware(host, found),
        cpu=cpu.cpu(host, bare_metal=os.virtualization == "none"),
        memory=memory.memory(host),
        disks=disks.disks(host, virtual_machine=virtual),
        networks=networks.networks(host),
        accelerators=found,
        links=links.links(host, found, bus, ask=said.trouble is None and said.installed is not False),
        driver=driver.driver(host, found, said, installed, wsl=wsl),
        toolkits=toolkits.toolkits(host, installed),
        cudnn=toolkits.cudnn(host, installed),
        nccl=toolkits.nccl(host, installed),
        environments=environments.environments(host),
        tools=tools.tools(host, installed),
    )
