"""Holding the clock high together with whoever sets the governor here: the service that has the last word is told, never fought."""

from __future__ import annotations

import re

from steps.catalog import linux
from steps.compat import switch_plan
from steps.model.action import AnyAction, Command, FileIs, Manual, Run, Write
from steps.model.base import phrase
from steps.model.machine import Machine
from steps.model.plan import Target

_WANTED = "performance"
_GOVERNOR = f"{switch_plan.CPU}/cpu*/cpufreq/scaling_governor"
_TUNED = "throughput-performance"
_TLP_DROP_IN = "/etc/tlp.d/90-bringup.conf"
_TLP_KEY = "CPU_SCALING_GOVERNOR_ON_AC"
_TUNED_PROFILE, _TUNED_MODE = "/etc/tuned/active_profile", "/etc/tuned/profile_mode"


def owners(machine: Machine) -> tuple[linux.Owner, ...]:
    """Return who sets the governor at each start; empty where nobody does, or where that is not known."""
    return tuple(linux.owner(id) for id in machine.told.governors or ())


def deciding(machine: Machine) -> tuple[linux.Owner, ...]:
    """Return those that would set it again after us: one that only speaks at the start can be switched off."""
    found = owners(machine)
    silent = {"ondemand"}
    if any(one.id == "tuned-ppd" for one in found):
        # A door to TuneD, no second opinion.
        silent.add("tuned")
    if machine.cpu.governor != "powersave":
        # It knows processors that choose their clock themselves, and those know two governors; others it leaves alone.
        silent.add("power-profiles-daemon")
    return tuple(one for one in found if one.id not in silent)


def held(machine: Machine) -> bool:
    """Return whether the clock is held high: by the governor, or by the preference where a service of power profiles sets that."""
    profiles = {"tuned-ppd", "power-profiles-daemon"} & set(machine.told.governors or ())
    return machine.cpu.governor == _WANTED or bool(profiles and machine.told.preference == _WANTED)


def governed(machine: Machine, target: Target) -> tuple[AnyAction, ...]:
    """Return the actions that hold the clock high from the next start on, and now where the system runs."""
    before = machine.cpu.governor
    if before is None or before == _WANTED:
        return ()
    found = deciding(machine)
    # In a mounted system only TuneD's tool works without its daemon.
    if len(found) > 1 or (found and found[0].id != "tuned" and target.root != "/"):
        return (_by_hand(", ".join(one.label for one in found)),)
    if not found:
        return (*_silenced(machine), *_ours(machine, target, before))
    return _ASKED.get(found[0].id, _nothing)(machine) or (_by_hand(found[0].label),)


def _nothing(machine: Machine) -> tuple[AnyAction, ...]:
    return ()


def _by_hand(names: str) -> Manual:
    """Return the request to settle it there: a second writer would be overruled, or overrule."""
    return Manual(
        id="firmware.governor",
        title=phrase("firmware.action.governor"),
        why=phrase("firmware.action.governor-owner", owner=names),
        text=phrase("firmware.action.governor-manual", owner=names),
    )


def _asked(machine: Machine, argv: tuple[str, ...], undo: tuple[str, ...], number: int = 1) -> Run:
    """Return the request to the service in charge."""
    label = deciding(machine)[0].label
    return Run(
        id=f"firmware.governor.{number}",
        title=phrase("firmware.action.governor"),
        why=phrase("firmware.action.governor-owner", owner=label),
        argv=argv,
        undo=(Command(argv=undo),),
        seconds=5.0,
    )


def _ours(machine: Machine, target: Target, before: str) -> tuple[AnyAction, ...]:
    """Return a service of our own, where nobody else sets the governor."""
    title = phrase("firmware.action.governor")
    return switch_plan.sysfs(machine, target, "governor", title, {_GOVERNOR: _WANTED}, {_GOVERNOR: before})


def _silenced(machine: Machine) -> tuple[AnyAction, ...]:
    """Return the end of Ubuntu's own unit, which lowers the clock a minute after the start."""
    if not any(one.id == "ondemand" for one in owners(machine)):
        return ()
    unit = linux.owner("ondemand").units[0]
    return (
        Run(
            id="firmware.governor.ondemand",
            title=phrase("firmware.action.disable", unit=unit),
            why=phrase("firmware.action.governor-owner", owner=unit),
            argv=("systemctl", "disable", unit),
            undo=(Command(argv=("systemctl", "enable", unit)),),
            seconds=2.0,
        ),
    )


# --- those that can be asked ----------------------------------------------------------------------------


def _tuned(machine: Machine) -> tuple[AnyAction, ...]:
    """Return the profile that holds the clock; undo returns to the one of now, which TuneD or a person chose."""
    texts = machine.told.texts
    profile, mode = texts.get(_TUNED_PROFILE, "").split(), texts.get(_TUNED_MODE, "").strip()
    back = ("tuned-adm", "auto_profile") if mode == "auto" else ("tuned-adm", "profile", *profile) if profile else ("tuned-adm", "off")
    return (_asked(machine, ("tuned-adm", "profile", _TUNED), back),)


def _power_profiles(machine: Machine) -> tuple[AnyAction, ...]:
    """Return the power profile; the daemon keeps it over a restart, and so does TuneD's stand-in for it."""
    texts = machine.told.texts
    said = re.search(r"^Profile=(\S+)$", texts.get("/var/lib/power-profiles-daemon/state.ini", ""), re.MULTILINE)
    former = said[1] if said else texts.get("/etc/tuned/ppd_base_profile", "").strip() or "balanced"
    if former == _WANTED:
        return ()
    return (_asked(machine, ("powerprofilesctl", "set", _WANTED), ("powerprofilesctl", "set", former)),)


def _auto_cpufreq(machine: Machine) -> tuple[AnyAction, ...]:
    return (_asked(machine, ("auto-cpufreq", f"--force={_WANTED}"), ("auto-cpufreq", "--force=reset")),)


def _tlp(machine: Machine) -> tuple[AnyAction, ...]:
    """Return TLP's own setting: in a file beside the others unless its main file, which is read last, says something."""
    texts = machine.told.texts
    main = "/etc/tlp.conf" if "/etc/tlp.conf" in texts else "/etc/default/tlp" if "/etc/default/tlp" in texts else None
    if main is None:
        return ()
    path = main if main == "/etc/default/tlp" or _assignment(_TLP_KEY).search(texts[main]) else _TLP_DROP_IN
    return _kept(machine, path, assigned(texts.get(path, ""), _TLP_KEY, _WANTED), ("tlp", "start"))


def _cpufrequtils(machine: Machine) -> tuple[AnyAction, ...]:
    path = "/etc/default/cpufrequtils"
    text = assigned(machine.told.texts.get(path, ""), "GOVERNOR", _WANTED)
    return _kept(machine, path, text, ("systemctl", "restart", "cpufrequtils.service"))


def _kept(machine: Machine, path: str, text: str, apply: tuple[str, ...]) -> tuple[AnyAction, ...]:
    """Return a service's own file with our word in it, and the service told to read it; undo makes it read the former one last."""
    title, done = phrase("firmware.action.file", path=path), (FileIs(path=path, text=text),)
    write = Write(id="firmware.governor.file", title=title, path=path, text=text, done_when=done)
    after = Run(id="firmware.governor.2", title=phrase("firmware.action.governor"), argv=apply, needs=(write.id,), seconds=5.0)
    return (_asked(machine, apply, apply), write, after)


def _assignment(key: str) -> re.Pattern[str]:
    return re.compile(rf"^[ \t]*{key}=.*$", re.MULTILINE)


def assigned(text: str, key: str, value: str) -> str:
    """Return shell settings in which a key has a value: its last assignment is changed, or one is added; the rest stays as it is."""
    line = f'{key}="{value}"'
    found = list(_assignment(key).finditer(text))
    if found:
        return f"{text[: found[-1].start()]}{line}{text[found[-1].end() :]}"
    return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{line}\n"


_ASKED = {
    "tuned-ppd": _power_profiles,
    "tuned": _tuned,
    "power-profiles-daemon": _power_profiles,
    "auto-cpufreq": _auto_cpufreq,
    "tlp": _tlp,
    "cpufrequtils": _cpufrequtils,
}
