"""The profile: a person's answers, as the contract's section 3 writes them in TOML.

An absent table or key means *leave alone*; "none" means *not wanted* and never removes anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_type_hints

import msgspec

from steps.model.base import Record
from steps.model.finding import Patch

Auto = Literal["auto", "off"]
EnvironmentManager = Literal["uv", "venv", "conda", "mamba", "micromamba", "pixi"]
"""Who makes an environment."""


class DriverAnswers(Record):
    """`branch` is a line such as "580"; `ignore` are PCI addresses of cards that are left out."""

    branch: str | None = None
    flavor: Literal["open", "proprietary"] | None = None
    source: Literal["distro", "nvidia-repo", "ppa", "rpmfusion", "keep"] | None = None
    server: bool | None = None
    ignore: tuple[str, ...] | None = None
    console: Literal["in-person", "bmc", "nobody"] | None = None
    """Who can see the machine's console while it boots, and confirm a key there."""


class ToolkitAnswers(Record):
    """Lines such as "12.8", or "none"."""

    cuda: str | None = None
    cudnn: str | None = None
    nccl: str | None = None


class NcclAnswers(Record):
    """What `/etc/nccl.conf` will say."""

    interface: str | None = None
    infiniband: Auto | None = None
    p2p: Auto | None = None
    gdr: Auto | None = None
    debug: Literal["WARN", "INFO"] | None = None
    extra: Mapping[str, str] | None = None


class EnvironmentAnswers(Record):
    """Where the frameworks go; `python` is a line such as "3.12", `lock` a list that an environment shall hold exactly."""

    manager: EnvironmentManager | None = None
    name: str | None = None
    path: str | None = None
    python: str | None = None
    lock: str | None = None
    shared: bool | None = None
    """Whether it is for everybody on the machine: below /opt, root's to change."""
    group: str | None = None
    """The group that may read a shared one; absent: everybody."""

    @property
    def for_all(self) -> bool:
        """Whether it is a shared one: one that a group may read is."""
        return self.shared is True or self.group is not None


class MonitoringAnswers(Record):
    """Which monitors are wanted."""

    dcgm_exporter: bool | None = None
    glances: bool | None = None
    nvitop: bool | None = None
    persistence: bool | None = None


class ContainerAnswers(Record):
    """Which container tools are wanted."""

    docker: bool | None = None
    nvidia_container_toolkit: bool | None = None


class NetworkAnswers(Record):
    """How the network is reached; `apt`, `pypi`, `torch_index` and `conda` are mirrors: URLs or preset names of the catalogue."""

    proxy: str | None = None
    apt: str | None = None
    pypi: str | None = None
    torch_index: str | None = None
    conda: str | None = None
    find_links: str | None = None
    ca_file: str | None = None
    download_ahead: bool | None = None
    """Whether what the answers need is downloaded while questions are open; absent means only after a person's yes."""


class HardwareAnswers(Record):
    """What the machine is wanted for; the guide is graded for it. Absent means training, which the guide was written for."""

    goal: Literal["learn", "fine-tune", "train", "many-gpus"] | None = None


class FirmwareAnswers(Record):
    """BIOS items that a person has confirmed by eye, and what Linux shall do where the BIOS was left alone."""

    acknowledged: tuple[str, ...] | None = None
    linux: tuple[Literal["iommu-pt", "c-states", "governor", "acs-off", "measure-link"], ...] | None = None


class Profile(Record):
    """All answers; `frameworks` maps a distribution name to an exact version, and `variant` to torch's variant."""

    schema: int = 1
    driver: DriverAnswers = DriverAnswers()
    toolkit: ToolkitAnswers = ToolkitAnswers()
    nccl: NcclAnswers = NcclAnswers()
    environment: EnvironmentAnswers = EnvironmentAnswers()
    frameworks: Mapping[str, str] = {}
    monitoring: MonitoringAnswers = MonitoringAnswers()
    containers: ContainerAnswers = ContainerAnswers()
    network: NetworkAnswers = NetworkAnswers()
    firmware: FirmwareAnswers = FirmwareAnswers()
    hardware: HardwareAnswers = HardwareAnswers()
    prompts: Mapping[str, str] = {}
    """How programs are answered that ask something: a row of `assets/data/prompts.toml`, and one of its answers."""


_TABLES: Mapping[str, Any] = {name: kind for name, kind in get_type_hints(Profile).items() if name != "schema"}
"""The tables of a profile by name, with what they hold."""


def holds_credentials(address: str) -> bool:
    """Return whether an address names a user or a password (`https://token@index.example/simple`)."""
    # By hand: a proxy may come without a scheme, an address may be malformed, and the runner does without urllib.
    return "@" in (address.partition("://")[2] or address).partition("/")[0]


def answered(profile: Profile, patch: Patch) -> Profile:
    """Return `profile` with `patch` taken: dotted keys set, keys patched with `None` absent.

    Raises `msgspec.ValidationError` when a key or value does not belong in a profile.
    """
    tables: dict[str, dict[str, Any]] = {}
    for key, value in patch.items():
        table, _, name = key.partition(".")
        if table not in _TABLES:
            raise msgspec.ValidationError(f"no table `{table}`")
        entries = tables.get(table)
        if entries is None:
            entries = tables[table] = msgspec.to_builtins(getattr(profile, table))
        if value is None:
            entries.pop(name, None)
        else:
            entries[name] = value
    # Only what the patch touches is read anew: options by the hundred are tried at every key.
    return msgspec.structs.replace(profile, **{table: msgspec.convert(entries, _TABLES[table]) for table, entries in tables.items()})


def as_tables(profile: Profile) -> dict[str, Any]:
    """Return the profile as plain tables with only what was answered, the way its TOML says it."""
    tables: dict[str, Any] = {"schema": profile.schema}
    for name, entries in msgspec.to_builtins(profile).items():
        if isinstance(entries, dict):
            said = {key: value for key, value in entries.items() if value is not None}
            if said:
                tables[name] = said
    return tables
