"""What Linux can do where the BIOS was left alone: one question, and actions that are all taken back by undo.

Nothing is ticked beforehand, and a plan with any of these asks for a typed word before it starts.
"""

from __future__ import annotations

from collections.abc import Callable

from steps import resources
from steps.catalog import guide
from steps.compat import acs_plan, boot_plan, governor_plan, switch_plan
from steps.compat.firmware import SLOW_GOVERNORS, translated
from steps.compat.paths import detours
from steps.compat.setting import guest
from steps.model.action import AnyAction, Manual, Run
from steps.model.base import Words, phrase
from steps.model.choice import Choice, Note, Option
from steps.model.finding import Patch
from steps.model.machine import Machine, judged
from steps.model.plan import Plan, Target
from steps.model.profile import Profile
from steps.model.software import Environment

WORD = "write"
"""What a person types before such a plan starts: the kernel's command line and its switches are no packages."""
_MEASURE_SECONDS = 5
_PARAMETERS = "https://docs.kernel.org/admin-guide/kernel-parameters.html"
_GOVERNOR = "https://docs.kernel.org/admin-guide/pm/cpufreq.html"
_NCCL = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html"


def question(machine: Machine, answers: Profile) -> Choice | None:
    """Return what can be ticked here; `None` where Linux has nothing to offer, as in a guest or a container."""
    taken = answers.firmware.linux or ()
    offered = [item for item, tick in _TICKS.items() if tick(machine) or item in taken]
    if guest(machine) or machine.os.container not in (None, "none") or not offered:
        return None
    options = tuple(_option(machine, item, taken) for item in offered)
    return Choice(key="firmware.linux", kind="many", title=phrase("firmware.linux.title"), options=options, taken=taken)


def _option(machine: Machine, item: str, taken: tuple[str, ...]) -> Option:
    """Return one tick with what it would write, what it costs and how it is taken back."""
    left: Patch = {"firmware.linux": (tuple(one for one in taken if one != item) if item in taken else (*taken, item)) or None}
    sentences: list[Words] = [phrase(f"firmware.linux.{item}.explain", **_figures(machine))]
    if item == "acs-off":
        sentences.append(phrase("firmware.linux.acs-off.lost"))
    if machine.told.portable and item in ("c-states", "governor"):
        sentences.append(phrase("firmware.linux.battery"))
    return Option(
        value=item,
        label=phrase(f"firmware.linux.{item}.label"),
        mark="info",
        tag=phrase("firmware.tag.ticked" if item in taken else "firmware.tag.offered"),
        sentences=tuple(sentences),
        notes=_notes(machine, item),
        patch=left,
    )


def _notes(machine: Machine, item: str) -> tuple[Note, ...]:
    """Return what a tick leads to, in the order of the hint; the measurement changes nothing and has none."""
    if item == "measure-link":
        return ()
    notes = [Note(label="leads-to", text=command, command=True) for command in _leads_to(machine, item)]
    notes.append(Note(label="undo", text=phrase("firmware.linux.undo")))
    notes.append(Note(label="after", text=phrase("firmware.linux.word", word=WORD)))
    owners = governor_plan.owners(machine) if item == "governor" else ()
    if owners:
        notes.append(Note(label="because", text=phrase("firmware.linux.owned", owner=", ".join(one.label for one in owners))))
    if item == "iommu-pt" or machine.told.systemd is False:
        notes.append(Note(label="after", text=phrase("firmware.linux.reboot")))
    sources = {"iommu-pt": _PARAMETERS, "acs-off": _NCCL, "c-states": guide.limit("idle-latency").source, "governor": _GOVERNOR}
    source = owners[0].source if owners else sources.get(item)
    return (*notes, Note(label="source", text=source)) if source else tuple(notes)


def _leads_to(machine: Machine, item: str) -> list[str]:
    """Return the tool or the file that a tick ends in, one line each."""
    if _by_parameter(machine, item):
        loader = boot_plan.loader_of(machine)
        return [f"{parameter} ({loader.tool if loader else '?'})" for parameter in _parameters(machine, (item,))]
    planned = _SWITCHES[item](machine, Target())
    units = [f"systemctl enable --now {switch_plan.unit_of(name)}" for name in _SERVICES.get(item, ())]
    runs = [" ".join(action.argv) for action in planned if isinstance(action, Run) and action.argv[0] not in ("setpci", "systemctl")]
    return runs[:1] or ([] if any(isinstance(action, Manual) for action in planned) else units)


_SERVICES = {"c-states": ("idle",), "governor": ("governor",), "acs-off": ("acs",)}


def _figures(machine: Machine) -> dict[str, int]:
    """Return what the sentences are filled with."""
    latencies = [one.latency_us or 0 for one in machine.cpu.idle_states or () if one.enabled]
    return {
        "latency": max(latencies, default=0),
        "limit": int(guide.limit("idle-latency").maximum),
        "seconds": _MEASURE_SECONDS,
        "count": len(acs_plan.switchable(machine)),
    }


# --- which ticks are offered ------------------------------------------------------------------------


def _translates(machine: Machine) -> bool:
    """Whether the IOMMU stands between cards that copy to each other, so that pass-through would help.

    `iommu=pt` is a parameter of x86; elsewhere it would change nothing.
    """
    peers = [card for card in judged(machine) if guide.without_peers(card.name, card.architecture) is None]
    return translated(machine) is True and machine.os.arch == "x86_64" and len(peers) > 1


def deep_states(machine: Machine) -> tuple[int, ...]:
    """Return the numbers of the idle states that wake later than the guide likes and are allowed now."""
    allowed = guide.limit("idle-latency").maximum
    states = machine.cpu.idle_states or ()
    return tuple(number for number, one in enumerate(states) if one.enabled and (one.latency_us or 0) > allowed)


def _slow(machine: Machine) -> bool:
    """Whether the governor lets the clock fall."""
    return machine.cpu.governor in SLOW_GOVERNORS


def with_torch(machine: Machine) -> Environment | None:
    """Return an environment whose torch could load the links now; `None` without one, or without a working driver."""
    if machine.driver.state != "working" or not any(card.vendor == "nvidia" for card in judged(machine)):
        return None
    return next((one for one in machine.environments if one.path and "torch" in one.frameworks), None)


_TICKS: dict[str, Callable[[Machine], bool]] = {
    "iommu-pt": _translates,
    "c-states": lambda machine: bool(deep_states(machine)),
    "governor": _slow,
    "acs-off": lambda machine: bool(acs_plan.switchable(machine)),
    "measure-link": lambda machine: with_torch(machine) is not None,
}


def word_of(plan: Plan) -> str:
    """Return the word that must be typed before a plan starts, "" when none is needed."""
    ticked = set(plan.profile.firmware.linux or ()) - {"measure-link"}
    touched = any(action.id.startswith("firmware.") and not isinstance(action, Manual) for action in plan.actions)
    return WORD if ticked and touched else ""


def missing(machine: Machine, answers: Profile) -> tuple[str, ...]:
    """Return the ticks that are not true of the machine as it is now; empty when all are."""
    true = {
        "iommu-pt": not translated(machine),
        "c-states": not deep_states(machine),
        "governor": governor_plan.held(machine),
        "acs-off": not detours(machine),
    }
    return tuple(item for item in answers.firmware.linux or () if not true.get(item, True))


# --- actions ----------------------------------------------------------------------------------------


def actions(machine: Machine, answers: Profile, target: Target) -> tuple[AnyAction, ...]:
    """Return what makes the ticks true, the measurement first: nothing of the driver has been touched by then."""
    ticked = answers.firmware.linux or ()
    made: list[AnyAction] = []
    if "measure-link" in ticked and target.root == "/":
        made += _measured(machine)
    for item, planned in _SWITCHES.items():
        if item in ticked and not _by_parameter(machine, item):
            made += planned(machine, target)
    wanted = _parameters(machine, ticked)
    if wanted:
        title = phrase("firmware.action.parameters", parameters=" ".join(wanted))
        made += boot_plan.parameters(machine, wanted, title, phrase("firmware.action.parameters-why"))
    return tuple(made)


def _by_parameter(machine: Machine, item: str) -> bool:
    """Return whether a tick ends on the kernel's command line: where systemd is not, no service of ours could hold a switch."""
    return item == "iommu-pt" or (item in ("c-states", "governor") and machine.told.systemd is False)


def _parameters(machine: Machine, ticked: tuple[str, ...]) -> tuple[str, ...]:
    """Return the parameters that the ticks want of the kernel."""
    asked = [item for item in ticked if _by_parameter(machine, item)]
    deep = deep_states(machine)
    wanted: list[str] = []
    if "iommu-pt" in asked:
        wanted.append("iommu=pt")
    if "c-states" in asked and deep:
        # States are numbered from 0, the state that does not sleep; the parameter names the deepest that stays allowed.
        module = "intel_idle" if machine.cpu.idle_driver == "intel_idle" else "processor"
        wanted.append(f"{module}.max_cstate={max(1, deep[0] - 1)}")
    if "governor" in asked and _slow(machine):
        wanted.append("cpufreq.default_governor=performance")
    return tuple(wanted)


def _measured(machine: Machine) -> tuple[AnyAction, ...]:
    """Return the load measurement: copies for a few seconds, writes nothing, and a failure stops nothing."""
    environment = with_torch(machine)
    if environment is None:
        return ()
    argv = (f"{environment.path}/bin/python", "-I", resources.path_of("training", "measure_link.py"), "--seconds", str(_MEASURE_SECONDS))
    return (
        Run(
            id="firmware.measure-link",
            title=phrase("firmware.action.measure"),
            why=phrase("firmware.linux.measure-link.explain", **_figures(machine)),
            lane="packages",  # before the driver's own actions, never beside them
            by="user",
            argv=argv,
            seconds=30.0 + _MEASURE_SECONDS * len(judged(machine)),
            timeout=300.0,
            optional=True,
        ),
    )


def _idle(machine: Machine, target: Target) -> tuple[AnyAction, ...]:
    """Return the service that forbids deep sleep, one switch a state; stopping it allows them again."""
    paths = [f"{switch_plan.CPU}/cpu*/cpuidle/state{number}/disable" for number in deep_states(machine)]
    if not paths:
        return ()
    title = phrase("firmware.action.idle")
    return switch_plan.sysfs(machine, target, "idle", title, dict.fromkeys(paths, "1"), dict.fromkeys(paths, "0"))


_SWITCHES: dict[str, Callable[[Machine, Target], tuple[AnyAction, ...]]] = {
    "c-states": _idle,
    "governor": governor_plan.governed,
    "acs-off": acs_plan.cleared,
}
"""What a tick does that is no parameter of the kernel."""
