"""What stops a run of a package manager or an installer: locks, a run that died, questions that nobody answers, no space."""

from __future__ import annotations

import re
from typing import Literal

from steps.doctor.events.base import Event, parses
from steps.doctor.told import Place


class Locked(Event):
    """Somebody else holds the lock; the holder's name and number where they are told."""

    lock: str | None = None
    holder: str | None = None
    pid: int | None = None


_NOT_ROOT = re.compile(r"\(13:|are you root|Permission denied|êtes-vous|Êtes-vous|您是 root|权限不够|Sind Sie root|Keine Berechtigung")


@parses(
    r"(?P<lock>/var/(?:lib/dpkg|lib/apt/lists|cache/apt/archives|cache/debconf|run/yum|run/dnf|lib/rpm|lib/pacman|run/zypp)[\w./-]*"
    r"(?:lock\S*?|\.pid|config\.dat|db\.lck))\b(?P<rest>[^\n]*)",
    "dpkg/lock", "lists/lock", "archives/lock", "/var/run/yum.pid", "debconf/config.dat", ".rpm.lock", "rpmdb_lock", "zypp.pid",
)  # fmt: skip
def locked(found: re.Match[str], at: Place) -> Locked | None:
    """Recognise the message about a lock by the path of the lock, whatever the language; one that asks for root is another matter."""
    if _NOT_ROOT.search(at.text) or re.search(r"\brm\b|fuser|chmod|lsof|ls -", at.text):
        return None
    held = re.search(
        r"(?:process|processus|Prozess|proceso|processo|进程|進程|процесс\w*|pid) ?(?P<pid>\d+) ?[(（](?P<holder>[^)）]+)[)）]", at.text
    )
    alone = re.search(r"(?:pid|process) ?(\d+)", at.text)
    pid = held["pid"] if held else alone[1] if alone else None
    return Locked(place=at, lock=found["lock"], holder=held["holder"] if held else None, pid=int(pid) if pid else None)


@parses(
    r"lock was locked by (?:another process|(?P<holder>\S+) process)(?: with pid (?P<pid>\d+))?|"
    r"Waiting for process with pid (?P<waits>\d+) to finish|another copy is running as pid (?P<yum>\d+)|"
    r"Failed to obtain rpm transaction lock|Another app is currently holding the yum lock|"
    r"System management is locked by the application with pid (?P<zypper>\d+) \((?P<named>[^)]+)\)|"
    r"dpkg (?:frontend|status database|database) is locked by another process|"
    r"unable to lock database|另一个进程占用了锁",
    "lock was locked by", "process with pid", "another copy is running", "rpm transaction lock", "holding the yum lock",
    "management is locked", "unable to lock database", "is locked by another process",
)  # fmt: skip
def locked_otherwise(found: re.Match[str], at: Place) -> Locked:
    """Recognise dpkg alone, dnf, yum, zypper and pacman."""
    pid = found["pid"] or found["waits"] or found["yum"] or found["zypper"]
    holder = (found["holder"] or found["named"] or "").rsplit("/", 1)[-1] or None
    return Locked(place=at, holder=holder, pid=int(pid) if pid else None)


class Interrupted(Event):
    """A package manager says that an earlier run was cut off."""


@parses(
    r"^(?!.*[$#] )(?:[EWN]: ?|[^\n]*dpkg[^\n]*?(?:interrupt|unterbroch|interromp|中断|中斷|прерв)[^\n]*|"
    r"[^\n]*['‘’«“\"»])[^\n]*dpkg --configure -a[^\n]*|"
    r"There are unfinished transactions remaining|have been unpacked but not yet configured|are only half configured, probably|"
    r"only half installed, due to problems",
    "--configure -a", "unfinished transactions", "but not yet configured", "only half configured", "only half installed",
)  # fmt: skip
def interrupted(found: re.Match[str], at: Place) -> Interrupted:
    """Recognise apt in any language by the command that it asks for, dpkg's audit, and yum."""
    return Interrupted(place=at)


class Dialog(Event):
    """A question on the whole screen."""

    program: Literal["needrestart", "debconf", "secure-boot"]


@parses(
    r"Daemons using outdated libraries|Which services should be restarted|Pending kernel upgrade|"
    r"Newer kernel available|(?P<secure>Configuring Secure Boot|Enter a password for Secure Boot|UEFI Secure Boot requires additional|"
    r"password for Secure Boot)|(?P<debconf>Package configuration|"
    r"[┌┤─][^\n]*(?:Configuring|Konfiguriere\w*|Configuration de|正在设定) \S+[^\n]*[├─┐])",
    "using outdated libraries", "services should be restarted", "Pending kernel upgrade", "Newer kernel available", "Secure Boot",
    "Package configuration", "┤",
)  # fmt: skip
def dialog(found: re.Match[str], at: Place) -> Dialog:
    """Recognise the screens of needrestart, of debconf, and of the question for Secure Boot's password."""
    return Dialog(place=at, program="secure-boot" if found["secure"] else "debconf" if found["debconf"] else "needrestart")


class LineQuestion(Event):
    """debconf asks by lines, as it does where it has no screen, and nothing more of the run follows in what was read."""

    package: str


_GOES_ON = re.compile(
    r"^.{0,80}?(?:Setting up |Processing triggers for |Unpacking |Errors were encountered|E: Sub-process|Current default time zone: |"
    r"Use of uninitialized value |Creating config file |update-initramfs: |Created symlink )|^#\d+ (?:DONE|\[)|^Step \d+/\d+ : ",
    re.MULTILINE,
)


@parses(
    r"(?:^|[\] ])(?:Configuring|Konfiguriere\w*|Configuration de|正在设定|正在設定) (?P<package>[a-z0-9][\w.+-]*)[ \t]*\n"
    r"[^\n]{0,80}?-{5,}[ \t]*$",
    "Configuring ", "Konfiguriere", "Configuration de ", "正在设定", "正在設定",
    lines=16,
)  # fmt: skip
def line_question(found: re.Match[str], at: Place) -> LineQuestion | None:
    """Recognise the title that debconf underlines; a run that goes on had its answer."""
    return None if _GOES_ON.search(found.string, found.end()) else LineQuestion(place=at, package=found["package"])


class Conffile(Event):
    """dpkg asks what to do with a changed file of the configuration; `ended` when nobody could answer."""

    package: str | None = None
    ended: bool = False


@parses(r"\(Y/I/N/O/D/Z\) \[[^\]\n]*=?[NnYyIiOo]?[^\]\n]*\]", "(Y/I/N/O/D/Z)")
def conffile_asked(found: re.Match[str], at: Place) -> Conffile:
    """Recognise the question by its answers, which no language changes."""
    return Conffile(place=at)


@parses(
    r"(?:error processing package (?P<package>\S+) \(--configure\): )?(?:end of file on stdin at conffile prompt|EOF on stdin at conffile)|"
    r"(?:error processing package (?P<other>\S+) \(--configure\): )?(?:conffile[^\n]*(?:标准输入|文件结尾)|"
    r"(?:fin de fichier|Dateiende|EOF|fin de archivo)[^\n]*(?:conffile|fichier de configuration|Conffile|Konfigurationsdatei))",
    "at conffile prompt", "stdin at conffile", "error processing package", "onffile", "fin de fichier", "Dateiende",
    lines=2,
)  # fmt: skip
def conffile_ended(found: re.Match[str], at: Place) -> Conffile:
    """Recognise that the input had ended."""
    return Conffile(place=at, package=found["package"] or found["other"], ended=True)


class NoTerminal(Event):
    """debconf has no terminal to ask on: harmless alone."""


@parses(r"debconf: unable to initialize frontend|frontend will not work on a dumb terminal|debconf: falling back to frontend", "debconf: ")
def no_terminal(found: re.Match[str], at: Place) -> NoTerminal:
    """Recognise debconf's notes."""
    return NoTerminal(place=at)


Writer = Literal["initramfs", "packages", "pip", "other"]


class NoSpace(Event):
    """A file could not be written for want of space: who wrote, and where to."""

    writer: Writer
    path: str | None = None


_FULL = (
    r"(?:No space left on device|[Nn]ot? enough (?:free )?(?:disk )?space|don't have enough free space|设备上没有空间|裝置上已無多餘空間|"
    r"Aucun espace disponible|[Kk]ein Speicherplatz|[Kk]ein Platz mehr|No queda espacio|Não há espaço|Spazio esaurito|ENOSPC|"
    r"Disk requirements:|At least \S+ more space needed|Disk quota exceeded|"
    r"needs \S+ more space on|Ensure there is enough space|[Ww]rite error ?: ?cannot write (?:compressed )?block)"
)
_OF_A_COMPILER = re.compile(r"^\s*/\S*/(?:ld|as|cc1(?:plus)?|collect2|gcc|g\+\+|nvcc)[\w.-]*: ")
"""A program that builds: its own path is not where it writes to."""
_WRITERS: tuple[tuple[Writer, str], ...] = (
    ("pip", r"Errno 28|os error 28|OSError\(28|pip|uv(?:x)? |\.whl"),
    (
        "initramfs",
        r"mkinitramfs|initramfs|initrd|/boot\b|dracut|mkinitcpio|cannot write (?:compressed )?block|\b(?:zstd|lz4|xz|cpio)\b|/(?i:efi)/",
    ),
    ("packages", r"dpkg|apt|copy_file|extract|/usr|/var|/opt|rpm|installing package|cuda|NVIDIA-Linux|filesystem|space in /tmp"),
)


@parses(
    rf"^[^\n]*{_FULL}[^\n]*(?:\n[^\n]*(?:mkinitramfs|update-initramfs|more space needed|MB is needed|MB more space)[^\n]*){{0,2}}",
    "No space left", "enough free space", "enough disk space", "enough space", "没有空间", "裝置上已無", "Aucun espace",
    "ein Speicherplatz",
    "ein Platz mehr", "No queda espacio", "Não há espaço", "Spazio esaurito", "ENOSPC", "Disk requirements:",
    "more space needed", " more space on", "there is enough space",
    "quota exceeded", "annot write compressed", "annot write block",
    lines=3,
)  # fmt: skip
def no_space(found: re.Match[str], at: Place) -> NoSpace:
    """Recognise the error of the system in some languages, and what package managers say before they begin."""
    text = _OF_A_COMPILER.sub("", found[0])
    writer: Writer = "other"
    for name, pattern in _WRITERS:
        if re.search(pattern, text):
            writer = name
            break
    if writer == "pip" and re.search(r"/var/(?:cache|lib)/|/usr/(?!local)|/boot/", text):
        writer = "packages"
    # A compressor that is run for a package or an archive of ours writes no image of the kernel's.
    if writer == "initramfs" and re.search(r"copy_file|/usr/local/|/tmp/|dpkg-new|\.deb", text):
        writer = "packages"
    paths = re.findall(r"(?:'|\"|to |in |on |: )((?:\./)?/?(?:[\w.@~+-]+/)[\w./@~+-]*|/)(?=['\":.) ]|$)", text)
    named = [path if path.startswith("/") else f"/{path.removeprefix('./')}" for path in paths if "/" in path]
    place = Place(source=at.source, text=at.text.partition("\n")[0], order=at.order, seconds=at.seconds)
    return NoSpace(place=place, writer=writer, path=named[-1] if named else None)


class ImageFailed(Event):
    """The initramfs was not written."""


@parses(
    r"mkinitramfs failure|update-initramfs: failed for|dracut\S*: (?:FAILED|.*failed)|mkinitcpio[^\n]*(?:failed|ERROR)|"
    r"==> ERROR: (?:Image generation|Initcpio image generation) FAILED|Image creation failed",
    "mkinitramfs failure", "initramfs: failed", "dracut: ", "dracut[", "mage generation", "Image creation failed",
)  # fmt: skip
def image_failed(found: re.Match[str], at: Place) -> ImageFailed:
    """Recognise the tools of Debian, Fedora and Arch."""
    return ImageFailed(place=at)


class PipRan(Event):
    """pip, uv or conda downloads, unpacks or builds packages."""


@parses(
    r"(?:Downloading|Collecting|Using cached|Installing collected packages:) ?[\w.:/+-]+|"
    r"ERROR: Failed (?:to build|building wheel for) [`'\"]?[\w.-]+|[Gg]etting requirements to build wheel",
    "Downloading ", "Collecting ", "Using cached ", "collected packages", "ERROR: Failed ", "requirements to build wheel",
)  # fmt: skip
def pip_ran(found: re.Match[str], at: Place) -> PipRan:
    """Recognise pip's progress, and its word that a package could not be built."""
    return PipRan(place=at)


class NouveauRunning(Event):
    """The installer says that nouveau is in use until the next boot."""


@parses(
    r"Nouveau is running: any attempt|Nouveau kernel driver is currently in use|"
    r"nouveau (?:kernel )?(?:driver|module) is (?:currently )?(?:in use|loaded)",
    "Nouveau is running", "ouveau kernel driver is", "nouveau driver is", "nouveau module is",
    lines=2, flags=re.IGNORECASE,
)  # fmt: skip
def nouveau_running(found: re.Match[str], at: Place) -> NouveauRunning:
    """Recognise NVIDIA's installer, old and new."""
    return NouveauRunning(place=at)


class InstallerDone(Event):
    """The installer came to its end, or wrote what keeps nouveau out at the next boot."""


@parses(
    r"Installation of the (?:kernel module|NVIDIA Accelerated Graphics Driver|NVIDIA driver)[^\n]*(?:is now complete|has completed)|"
    r"is now complete|"
    r"One or more modprobe configuration files to disable Nouveau (?:have been written|are already present)|"
    r"will not install any kernel modules",
    "is now complete", "disable Nouveau", "not install any kernel",
    lines=3,
)  # fmt: skip
def installer_done(found: re.Match[str], at: Place) -> InstallerDone:
    """Recognise both."""
    return InstallerDone(place=at)
