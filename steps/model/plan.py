"""A plan: the ordered actions, what they came from, and the digest that was confirmed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Literal

import msgspec

from steps.model.action import AnyAction, Manual, Write
from steps.model.base import Record
from steps.model.profile import Profile

Digest = str


class Installer(Record):
    """How Python packages are fetched here: what the person's environment and pip's configuration say.

    Never holds a secret: an index URL with a password is refused before it gets here.
    """

    uv: str | None = None
    """Path of `uv`; `None` when it has to be fetched first."""
    managers: Mapping[str, str] = {}
    """Where `conda` and its kin are, by name; what the person does not have is missing."""
    pythons: Mapping[str, str] = {}
    """Installed interpreters by line: "3.12" → its path."""
    own_python: str | None = None
    """The interpreter that `bringup` runs on, where the target can run it too: it certainly can make an environment."""
    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    index_hidden: bool = False
    """Whether the environment names an index with a password: the installer is handed it, it stands nowhere, and nobody else asks."""
    find_links: tuple[str, ...] = ()
    no_index: bool = False
    """Whether no index is to be asked: a machine without a way out, whose wheels lie in `find_links`."""
    proxy: str | None = None
    certificates: str | None = None
    home: str = "/root"
    """The home folder of the person the environments belong to."""
    homeless: bool = False
    """Whether that folder is known not to be there: nothing can be cached in it."""
    user: str | None = None
    environments: str = "/opt/bringup/envs"
    """Where environments go unless the profile says otherwise."""


class Target(Record):
    """What the actions change: this machine, a root below a folder, or nothing (a rehearsal on a capture)."""

    root: str = "/"
    rehearsal: bool = False
    machine: str | None = None
    """The capture that stands for the hardware, if one does."""
    name: str = ""
    """What the header calls the machine: `gpu01`."""
    summary: str = ""
    """`4× RTX 4090 · Ubuntu 22.04.4`."""
    kernel: str | None = None
    """The kernel that modules are built for."""
    installer: Installer = Installer()

    @property
    def options(self) -> tuple[str, ...]:
        """The options that lead our own program to the same target."""
        machine = ("--machine", self.machine) if self.machine else ()
        return (*machine, *(("--root", self.root) if self.root != "/" else ()))


class Ahead(Record):
    """Whose fetching ahead a plan is: it ends with the program that a person chooses in."""

    pid: int
    born: str
    """When that process began, as the kernel counts: another one may have its number later."""


class Plan(Record):
    """What is confirmed is exactly what is run."""

    version: Literal[1] = 1
    made: float
    """When it was made, seconds since the epoch."""
    target: Target
    profile: Profile
    actions: tuple[AnyAction, ...]
    repairs: str | None = None
    """The id of the run whose failed action this plan repairs; `None` when it repairs no run."""
    ahead: Ahead | None = None
    """Set where the plan only fetches what another one will install, while a person still chooses; `None` for every other plan."""

    @property
    def needs_root(self) -> bool:
        """Whether any action is root's."""
        return any(action.by == "root" and not isinstance(action, Manual) for action in self.actions)


def distinct(plan: Plan) -> Plan:
    """Return the plan; raises `ValueError` where two actions share an id.

    By their ids they wait for each other and are told apart in the journal: with two of one id neither would ever begin.
    """
    ids = [action.id for action in plan.actions]
    doubled = sorted({id for id in ids if ids.count(id) > 1}) if len(set(ids)) < len(ids) else []
    if doubled:
        raise ValueError(f"two actions of one id: {', '.join(doubled)}")
    return plan


def names(plan: Plan) -> tuple[str, ...]:
    """Return what the plan installs or sets, each by its own name; what is there already has no action and no name."""
    profile, parts = plan.profile, {action.id.partition(".")[0] for action in plan.actions}
    named: list[str] = []
    if "driver" in parts and profile.driver.branch:
        named.append(" ".join(part for part in ("NVIDIA", profile.driver.branch, profile.driver.flavor) if part))
    if "toolkit" in parts:
        lines = {"CUDA": profile.toolkit.cuda, "cuDNN": profile.toolkit.cudnn, "NCCL": profile.toolkit.nccl}
        named += [f"{name} {line}" for name, line in lines.items() if line and line != "none"]
    if "environment" in parts:
        named += [f"{name} {version}" for name, version in profile.frameworks.items() if name != "variant" and version != "none"]
    named += [action.path.rpartition("/")[2] for action in plan.actions if isinstance(action, Write) and action.id.startswith("nccl.")]
    if "monitoring" in parts:
        named += [name.replace("_", "-") for name, wanted in msgspec.to_builtins(profile.monitoring).items() if wanted]
    return tuple(named)


def encode(plan: Plan) -> bytes:
    """Return the plan as the bytes of `plan.json`."""
    return msgspec.json.format(msgspec.json.encode(plan), indent=1)


def decode(data: bytes) -> Plan:
    """Return the plan in `data`; raises `msgspec.DecodeError` or `msgspec.ValidationError`."""
    return msgspec.json.decode(data, type=Plan)


def digest(plan: Plan) -> Digest:
    """Return the SHA-256 (hexadecimal) of the plan's canonical JSON; the review shows its first eight digits."""
    # Through its own file form: a whole number where a float belongs must not count as a change.
    return digest_of(encode(decode(msgspec.json.encode(plan))))


def digest_of(data: bytes) -> Digest:
    """Return the digest of a plan as its file has it; raises `msgspec.DecodeError` when that is no JSON.

    By the file and not by our records: a later version of this program, whose records have more fields, finds the same.
    """
    return sha256(msgspec.json.encode(msgspec.json.decode(data), order="sorted"))


def sha256(data: bytes) -> Digest:
    """Return the SHA-256 of `data` by the interpreter's own code: hashlib would load OpenSSL, a quarter of the runner's memory."""
    try:
        made = importlib.import_module("_sha2" if sys.version_info >= (3, 12) else "_sha256").sha256
    except ImportError:
        # Builds under FIPS rules carry no hashes of their own.
        made = importlib.import_module("hashlib").sha256
    return str(made(data).hexdigest())
