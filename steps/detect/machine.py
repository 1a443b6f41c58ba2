"""From a host to the facts about a machine."""

from __future__ import annotations

from steps.detect import accelerators as cards
from steps.detect import (
    boot,
    bridges,
    cpu,
    disks,
    driver,
    environments,
    firmware,
    gaps,
    infiniband,
    links,
    memory,
    modules,
    networks,
    nvml,
    packages,
    pci,
    power,
    ranks,
    smi,
    system,
    told,
    toolkits,
    tools,
    users,
)
from steps.detect.probes import Probes
from steps.host.base import Host
from steps.model.machine import Machine
from steps.model.software import Ranks


def detect(host: Host) -> Machine:
    """Return everything that `host` tells about its machine; what it does not tell is `None` or has a finding in `gaps`."""
    probes = Probes(host)
    try:
        return _detect(probes)
    finally:
        probes.close()


def _detect(host: Probes) -> Machine:
    # Everything that may keep us waiting is started first and asked for last.
    system.ahead(host)
    host.ahead(*memory.ASKED, *firmware.ASKED, *cpu.ASKED, networks.IP, toolkits.NVCC)
    installed = packages.packages(host)
    tools.ahead(host, installed)
    modules.ahead(host)
    bus = pci.devices(host)
    nvidia = any(device.vendor == "10de" for device in bus) or bool(installed.matching(r"nvidia-.*"))
    if nvidia:
        nvml.ahead(host)
    os = system.system(host, installed)
    reached = networks.networks(host, bus)
    on_disk, in_environments = toolkits.toolkits(host, installed), environments.environments(host)
    said = nvml.driver_says(host) if nvidia or os.wsl or host.host.rehearsal else smi.Smi()
    found = cards.accelerators(host, bus, said, os=os)
    driven = driver.driver(host, found, said, installed, bus, os=os)
    main_memory, board, users_now = memory.memory(host), firmware.firmware(host, found), users.users(host, found)
    return Machine(
        os=os,
        firmware=board,
        cpu=cpu.cpu(host, bare_metal=os.virtualization == "none"),
        memory=main_memory,
        power=power.power(host),
        disks=disks.disks(host, virtual_machine=os.virtualization not in (None, "none")),
        networks=reached,
        accelerators=found,
        links=links.links(host, found, bus, ask=said.trouble is None and said.installed is not False),
        bridges=bridges.bridges(host, found, bus),
        nvswitches=bridges.nvswitches(bus),
        infiniband=infiniband.infiniband(host, bus, reached),
        ranks=ranks.ranks(host, main_memory.total_bytes) if nvidia else Ranks(),
        users=users_now,
        driver=driven,
        toolkits=on_disk,
        cudnn=toolkits.cudnn(host, installed),
        nccl=toolkits.nccl(host, installed),
        environments=in_environments,
        tools=tools.tools(host, installed),
        library_path=toolkits.library_path(host),
        headers=system.headers(host, os.kernel),
        held=packages.held(host),
        boot=boot.entries(host) if nvidia else None,
        told=told.told(host, found, installed),
        gaps=gaps.gaps(host, gaps.Seen(os=os, memory=main_memory, firmware=board, cards=found, driver=driven, smi=said, users=users_now)),
    )
