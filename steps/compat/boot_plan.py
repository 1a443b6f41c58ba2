"""How a parameter gets onto the kernel's command line: what is there is kept, what was there comes back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from steps.catalog import linux, stack
from steps.model.action import AnyAction, Command, FileIs, Manual, Reboot, Run, Write
from steps.model.base import Words, phrase
from steps.model.machine import Machine

_OURS = re.compile(r'^GRUB_CMDLINE_LINUX_DEFAULT="\$GRUB_CMDLINE_LINUX_DEFAULT ([^"$`\\]*)"$', re.MULTILINE)
_BY_MANAGER = {"apt": "debian-grub", "dnf": "grubby", "zypper": "suse"}
Argv = tuple[str, ...]
Refresh = Callable[[Machine], tuple[Argv, ...]]
Change = Callable[[Machine, tuple[str, ...], Words, Words], tuple[AnyAction, ...]]


def loader_of(machine: Machine) -> linux.Loader | None:
    """Return what keeps the command line here: what was found, else what the distribution installs; `None` when not known."""
    row = stack.distribution_of(machine.os.id, machine.os.version)
    id = machine.told.loader or _BY_MANAGER.get(row.manager if row is not None else "")
    return linux.loader(id) if id is not None else None


def merged(words: Iterable[str], wanted: Iterable[str]) -> tuple[str, ...]:
    """Return a command line that says what is wanted: a parameter of the same name is changed in its place, the others stay."""
    line = list(words)
    for want in wanted:
        name = want.partition("=")[0]
        places = [place for place, word in enumerate(line) if word.partition("=")[0] == name]
        if places:
            line[places[0]] = want
            line = [word for place, word in enumerate(line) if place not in places[1:]]
        else:
            line.append(want)
    return tuple(line)


def appended(text: str, wanted: Iterable[str]) -> str:
    """Return GRUB's settings with a last line that adds the parameters; the shell reads it, so what stands above it still counts.

    They go into what normal entries get: the recovery entry starts without them, should one of them do harm.
    """
    found = _OURS.search(text)
    line = f'GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT {" ".join(merged(found[1].split() if found else (), wanted))}"'
    if found:
        return f"{text[: found.start()]}{line}{text[found.end() :]}"
    return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{line}\n"


def lacking(machine: Machine, wanted: Iterable[str]) -> tuple[str, ...]:
    """Return the parameters that the running kernel was not given."""
    given = machine.told.parameters or ()
    return tuple(want for want in wanted if want not in given)


def parameters(machine: Machine, wanted: tuple[str, ...], title: Words, why: Words) -> tuple[AnyAction, ...]:
    """Return the actions that give the next start these parameters, with the restart; empty when it has them already."""
    asked = lacking(machine, wanted)
    if not asked:
        return ()
    loader = loader_of(machine)
    change = _CHANGES.get(loader.id) if loader is not None else None
    made = change(machine, asked, title, why) if change is not None else ()
    if not made:
        text = phrase("firmware.action.boot-manual", parameters=" ".join(asked), file=loader.tool if loader else "?")
        return (Manual(id="firmware.boot", title=title, why=why, text=text),)
    return (*made, Reboot(id="firmware.reboot", title=phrase("firmware.action.reboot"), reason=phrase("firmware.linux.reboot")))


# --- commands that keep the parameters themselves -------------------------------------------------------


def _told(add: Callable[[str], Argv], remove: Callable[[str], Argv], after: Argv = ()) -> Change:
    """Return how a command is told one parameter after the other; `after` makes the menu where the command does not."""

    def made(machine: Machine, asked: tuple[str, ...], title: Words, why: Words) -> tuple[AnyAction, ...]:
        runs: list[AnyAction] = []
        if after:
            # On undo its command comes last, when the parameters are gone again.
            runs.append(_menu("before", after, undone=True))
        for number, want in enumerate(asked, start=1):
            undo = (Command(argv=remove(want)),)
            run = Run(id=f"firmware.boot.{number}", title=title, why=why, lane="packages", argv=add(want), undo=undo, seconds=10.0)
            runs.append(run)
        if after:
            runs.append(_menu("after", after, undone=False))
        return tuple(runs)

    return made


# --- files, and the command that makes a menu of them ---------------------------------------------------


def _filed(refresh: Refresh, text: Callable[[str, tuple[str, ...]], str | None]) -> Change:
    """Return how a file is edited and the menu made of it; empty where the file cannot be edited."""

    def made(machine: Machine, asked: tuple[str, ...], title: Words, why: Words) -> tuple[AnyAction, ...]:
        loader = loader_of(machine)
        path = loader.edits if loader is not None else None
        new = text(machine.told.texts.get(path, ""), asked) if path is not None else None
        commands = refresh(machine)
        if path is None or new is None or not commands:
            return ()
        write = Write(
            id="firmware.boot.file", title=title, why=why, lane="packages", path=path, text=new, done_when=(FileIs(path=path, text=new),)
        )
        return (*_menus("before", commands, undone=True), write, *_menus("after", commands, undone=False))

    return made


def _menus(when: str, commands: tuple[Argv, ...], *, undone: bool) -> tuple[AnyAction, ...]:
    numbered = enumerate(commands, start=1)
    return tuple(_menu(when if len(commands) == 1 else f"{when}.{number}", argv, undone=undone) for number, argv in numbered)


def _menu(when: str, argv: Argv, *, undone: bool) -> Run:
    """Return the making of the boot menu: before a change it shows that it can be made, on undo it is made without the change.

    Package scripts make the menu too, so it shares their lane.
    """
    word = when.partition(".")[0]
    return Run(
        id=f"firmware.boot.{when}",
        title=phrase(f"firmware.action.menu-{word}"),
        why=phrase("firmware.action.menu-why") if undone else "",
        lane="packages",
        argv=argv,
        undo=(Command(argv=argv),) if undone else (),
        seconds=10.0,
    )


def _one_line(text: str, asked: tuple[str, ...]) -> str | None:
    """Return /etc/kernel/cmdline with the parameters; `None` where it has no line yet: a kernel without `root=` does not start."""
    words = text.split()
    return " ".join(merged(words, asked)) + "\n" if any(word.startswith("root=") for word in words) else None


def _kernels(machine: Machine) -> tuple[Argv, ...]:
    """Return how each installed kernel's entry is written anew."""
    return tuple(("kernel-install", "add", kernel, f"/boot/vmlinuz-{kernel}") for kernel in machine.told.kernels)


def _always(*argv: str) -> Refresh:
    return lambda _machine: (argv,)


_CHANGES: dict[str, Change] = {
    "ostree": _told(
        lambda want: ("rpm-ostree", "kargs", f"--append-if-missing={want}"),
        lambda want: ("rpm-ostree", "kargs", f"--delete-if-present={want}"),
    ),
    "grubby": _told(
        lambda want: ("grubby", "--update-kernel=ALL", f"--args={want}"),
        lambda want: ("grubby", "--update-kernel=ALL", f"--remove-args={want}"),
    ),
    "kernelstub": _told(lambda want: ("kernelstub", "--add-options", want), lambda want: ("kernelstub", "--delete-options", want)),
    "suse": _told(
        lambda want: ("update-bootloader", "--add-option", want),
        lambda want: ("update-bootloader", "--del-option", want),
        ("update-bootloader", "--config"),
    ),
    "transactional": _filed(_always("transactional-update", "grub.cfg"), appended),
    "proxmox": _filed(_always("proxmox-boot-tool", "refresh"), _one_line),
    "proxmox-grub": _filed(_always("proxmox-boot-tool", "refresh"), appended),
    "systemd-boot": _filed(_kernels, _one_line),
    "debian-grub": _filed(_always("update-grub"), appended),
    "grub": _filed(_always("grub-mkconfig", "-o", "/boot/grub/grub.cfg"), appended),
}
