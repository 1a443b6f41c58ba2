"""What Linux can do where the BIOS was left alone: one question, and actions that are all taken back by undo.

Nothing is ticked beforehand, and a plan with any of these asks for a typed word before it starts.
"""

from __future__ import annotations

from collections.abc import Callable

from steps import resources
from steps.catalog import guide, stack
from steps.compat.firmware import SLOW_GOVERNORS
from steps.compat.setting import guest
from steps.model.action import AnyAction, Command, FileIs, Manual, Reboot, Run, Service, Succeeds, Write
from steps.model.base import Words, phrase
from steps.model.choice import Choice, Note, Option
from steps.model.finding import Patch
from steps.model.machine import Environment, Machine, judged
from steps.model.plan import Plan, Target
from steps.model.profile import Profile

WORD = "write"
"""What a person types before such a plan starts: the kernel's command line and its switches are no packages."""
_GRUB = "/etc/default/grub.d/90-bringup-iommu.cfg"
_UNITS = "/etc/systemd/system"
_CPU = "/sys/devices/system/cpu"
_MEASURE_SECONDS = 5


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
    notes = [Note(label="file", text=path) for path in _WRITES.get(item, ())]
    if item != "measure-link":
        notes.append(Note(label="undo", text=phrase("firmware.linux.undo")))
        notes.append(Note(label="after", text=phrase("firmware.linux.word", word=WORD)))
    if item == "iommu-pt":
        notes.append(Note(label="after", text=phrase("firmware.linux.reboot")))
        notes.append(Note(label="source", text=_IOMMU_SOURCE))
    left: Patch = {"firmware.linux": (tuple(one for one in taken if one != item) if item in taken else (*taken, item)) or None}
    return Option(
        value=item,
        label=phrase(f"firmware.linux.{item}.label"),
        mark="info",
        tag=phrase("firmware.tag.ticked" if item in taken else "firmware.tag.offered"),
        sentences=(phrase(f"firmware.linux.{item}.explain", **_figures(machine)),),
        notes=tuple(notes),
        patch=left,
    )


def _figures(machine: Machine) -> dict[str, int]:
    """Return what the sentences are filled with."""
    latencies = [one.latency_us or 0 for one in machine.cpu.idle_states or () if one.enabled]
    return {"latency": max(latencies, default=0), "limit": int(guide.limit("idle-latency").maximum), "seconds": _MEASURE_SECONDS}


# --- which ticks are offered ------------------------------------------------------------------------


def _translates(machine: Machine) -> bool:
    """Whether the IOMMU stands between cards that copy to each other, so that pass-through would help.

    `iommu=pt` is a parameter of x86; elsewhere it would change nothing.
    """
    peers = [card for card in judged(machine) if guide.without_peers(card.name, card.architecture) is None]
    return machine.firmware.iommu == "on" and machine.os.arch == "x86_64" and len(peers) > 1


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
    "measure-link": lambda machine: with_torch(machine) is not None,
}
_WRITES = {
    "iommu-pt": (_GRUB,),
    "c-states": (f"{_UNITS}/bringup-idle.service",),
    "governor": (f"{_UNITS}/bringup-governor.service",),
}
_IOMMU_SOURCE = "https://docs.kernel.org/admin-guide/kernel-parameters.html"


def word_of(plan: Plan) -> str:
    """Return the word that must be typed before a plan starts, "" when none is needed."""
    ticked = set(plan.profile.firmware.linux or ()) - {"measure-link"}
    touched = any(action.id.startswith("firmware.") and not isinstance(action, Manual) for action in plan.actions)
    return WORD if ticked and touched else ""


def missing(machine: Machine, answers: Profile) -> tuple[str, ...]:
    """Return the ticks that are not true of the machine as it is now; empty when all are."""
    true = {
        "iommu-pt": machine.firmware.iommu in ("passthrough", "off"),
        "c-states": not deep_states(machine),
        "governor": machine.cpu.governor == "performance",
    }
    return tuple(item for item in answers.firmware.linux or () if not true.get(item, True))


# --- actions ----------------------------------------------------------------------------------------


def actions(machine: Machine, answers: Profile, target: Target) -> tuple[AnyAction, ...]:
    """Return what makes the ticks true, the measurement first: nothing of the driver has been touched by then."""
    ticked = answers.firmware.linux or ()
    made: list[AnyAction] = []
    if "measure-link" in ticked and target.root == "/":
        made += _measured(machine)
    if "c-states" in ticked:
        made += _idle(machine)
    if "governor" in ticked:
        made += _governed(machine)
    if "iommu-pt" in ticked:
        made += _passed_through(machine)
    return tuple(made)


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


def _idle(machine: Machine) -> tuple[AnyAction, ...]:
    """Return the unit that forbids deep sleep, one switch a state; stopping it allows them again."""
    paths = tuple(f"{_CPU}/cpu*/cpuidle/state{number}/disable" for number in deep_states(machine))
    if not paths:
        return ()
    return _unit("idle", phrase("firmware.action.idle"), tuple((path, "1") for path in paths), tuple((path, "0") for path in paths))


def _governed(machine: Machine) -> tuple[AnyAction, ...]:
    """Return the unit that holds the clock high; stopping it puts the governor of now back."""
    before = machine.cpu.governor
    if before is None or before == "performance":
        return ()
    path = f"{_CPU}/cpu*/cpufreq/scaling_governor"
    return _unit("governor", phrase("firmware.action.governor"), ((path, "performance"),), ((path, before),))


def _unit(name: str, title: Words, on: tuple[tuple[str, str], ...], off: tuple[tuple[str, str], ...]) -> tuple[AnyAction, ...]:
    """Return a service that writes switches of /sys at its start and others at its end, by systemd's own writer of such files."""
    files = {f"/etc/bringup/{name}-on.conf": on, f"/etc/bringup/{name}-off.conf": off}
    start, stop = files
    text = (
        "[Unit]\n"
        f"Description=bringup: {name} of the processors\n\n"
        "[Service]\nType=oneshot\nRemainAfterExit=yes\n"
        f"ExecStart=/bin/systemd-tmpfiles --create {start}\n"
        f"ExecStop=/bin/systemd-tmpfiles --create {stop}\n\n"
        "[Install]\nWantedBy=multi-user.target\n"
    )
    unit = f"bringup-{name}.service"
    writes = {**{path: "".join(f"w {switch} - - - - {value}\n" for switch, value in lines) for path, lines in files.items()}}
    writes[f"{_UNITS}/{unit}"] = text
    made: list[AnyAction] = [
        Write(
            id=f"firmware.{name}.{number}",
            title=phrase("firmware.action.file", path=path),
            lane="system",
            path=path,
            text=content,
            done_when=(FileIs(path=path, text=content),),
        )
        for number, (path, content) in enumerate(writes.items(), start=1)
    ]
    needs = tuple(action.id for action in made)
    return (
        *made,
        Service(id=f"firmware.{name}.service", title=title, why=phrase("firmware.action.why"), unit=unit, needs=needs, seconds=2.0),
    )


def _passed_through(machine: Machine) -> tuple[AnyAction, ...]:
    """Return how `iommu=pt` gets onto the kernel's command line with this distribution's own tool, else by hand."""
    row = stack.distribution_of(machine.os.id, machine.os.version)
    manager = row.manager if row is not None else None
    title, why = phrase("firmware.action.iommu"), phrase("firmware.action.iommu-why")
    reboot = Reboot(id="firmware.reboot", title=phrase("firmware.action.reboot"), reason=phrase("firmware.linux.reboot"))
    if manager == "dnf":
        argv = ("grubby", "--update-kernel=ALL")
        change = Run(
            id="firmware.iommu",
            title=title,
            why=why,
            argv=(*argv, "--args=iommu=pt"),
            undo=(Command(argv=(*argv, "--remove-args=iommu=pt")),),
            seconds=5.0,
        )
        return (change, reboot)
    if manager != "apt":
        return (Manual(id="firmware.iommu", title=title, why=why, text=phrase("firmware.action.iommu-manual")),)
    text = 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX iommu=pt"\n'
    refresh = ("update-grub",)
    return (
        # Undo goes backwards: this one's is last, when the file is gone, so that the menu is made again without it.
        Run(
            id="firmware.iommu.before",
            title=phrase("firmware.action.grub-before"),
            why=phrase("firmware.action.grub-why"),
            argv=refresh,
            undo=(Command(argv=refresh),),
            seconds=10.0,
        ),
        Write(id="firmware.iommu.file", title=title, why=why, path=_GRUB, text=text, done_when=(FileIs(path=_GRUB, text=text),)),
        Run(
            id="firmware.iommu.menu",
            title=phrase("firmware.action.grub-after"),
            argv=refresh,
            done_when=(Succeeds(argv=("grep", "-qw", "iommu=pt", "/boot/grub/grub.cfg")),),
            needs=("firmware.iommu.file",),
            seconds=10.0,
        ),
        reboot,
    )
