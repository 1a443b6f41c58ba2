"""What package managers say of the packages that they are to install: changes, dependencies, versions, quarrels over files."""

from __future__ import annotations

import re

from steps.doctor.events.base import Event, parses
from steps.doctor.told import Place


class Changed(Event):
    """A package went from one version to another; `old` is `None` for a new one, `new` for one that was removed."""

    name: str
    old: str | None = None
    new: str | None = None


@parses(r"(?:^|[ ,:])(?P<name>[a-z0-9][\w.+-]*):(?P<arch>\w+) \((?P<old>\d[^,()\s]*), (?P<new>\d[^,()\s]*)\)", "Upgrade: ", "Downgrade: ")
def changed_by_apt(found: re.Match[str], at: Place) -> Changed:
    """Recognise each package in the history of apt."""
    return Changed(place=at, name=found["name"], old=found["old"], new=found["new"])


@parses(r"(?:^|[ ,])(?P<name>[a-z0-9][\w.+-]*):(?P<arch>\w+) \((?P<new>\d[^,()\s]*)(?:, automatic)?\)", "Install: ")
def installed_by_apt(found: re.Match[str], at: Place) -> Changed:
    """Recognise each new package in the history of apt."""
    return Changed(place=at, name=found["name"], new=found["new"])


@parses(r"\b(?:upgrade|downgrade) (?P<name>[a-z0-9][\w.+-]*)(?::\w+)? (?P<old>\d\S*) (?P<new>\d\S*)$", " upgrade ", " downgrade ")
def changed_by_dpkg(found: re.Match[str], at: Place) -> Changed:
    """Recognise a line of dpkg.log."""
    return Changed(place=at, name=found["name"], old=found["old"], new=found["new"])


@parses(
    r"(?:upgraded|downgraded|Upgraded|Downgraded) (?P<name>[\w.+-]+) \((?P<old>\S+) -> (?P<new>\S+)\)",
    "upgraded ", "downgraded ", "Upgraded ", "Downgraded ",
)  # fmt: skip
def changed_by_pacman(found: re.Match[str], at: Place) -> Changed:
    """Recognise a line of pacman.log."""
    return Changed(place=at, name=found["name"], old=found["old"], new=found["new"])


_UNATTENDED = "that will be upgraded"


@parses(
    r"(?:^| )(?P<name>(?:(?:lib(?:32)?)?nvidia|xserver-xorg-video-nvidia|cuda-drivers)[\w.+-]*)(?=\s|$)",
    _UNATTENDED,
)  # fmt: skip
def changed_unattended(found: re.Match[str], at: Place) -> Changed | None:
    """Recognise the driver's packages in the log of unattended-upgrades, which names no versions."""
    start = found.string.rfind("\n", 0, found.start() + 1) + 1
    if _UNATTENDED not in found.string[start : found.start() + 1]:
        return None
    return Changed(place=at, name=found["name"])


class SetDiffers(Event):
    """A check found two packages of the driver in two versions."""

    one: str
    other: str


@parses(
    r"(?:nvidia|libcuda|cuda-drivers)[\w.-]*(?: version)? ?[(:]? ?(?:\d+:)?(?P<one>[3-9]\d\d\.\d+(?:\.\d+)*)[\w.~-]*\)? "
    r"(?:does not match|doesn't match|differs from|is not equal to) [\w.-]*(?:nvidia|libcuda|cuda-drivers)[\w.-]*(?: version)? ?[(:]? ?"
    r"(?:\d+:)?(?P<other>[3-9]\d\d\.\d+(?:\.\d+)*)",
    "does not match", "doesn't match", "differs from", "is not equal to",
)  # fmt: skip
def set_differs(found: re.Match[str], at: Place) -> SetDiffers:
    """Recognise a sentence with two names and two versions, as scripts that build images print it."""
    return SetDiffers(place=at, one=found["one"], other=found["other"])


class Unmet(Event):
    """apt cannot have what a package depends on; `other` is the version that would be installed instead, if apt names one."""

    name: str
    wanted: str
    relation: str | None
    version: str | None
    why: str
    """`refused` (offered, but not going to be installed), `absent` (nobody offers it), `other` (another version), `unknown`."""
    other: str | None = None


_NOBODY = re.compile(
    r"not installable|无法安装|卻無法安裝|n'est pas installable|nicht installierbar|no es instalable|não é instalável|non è installabile|"
    r"не может быть установлен|nie da się|не може бути встановлен|インストールすることができません|설치할 수 없습니다|kurulabilir değil"
)
_DEPENDS = (
    r"(?:Depend|D[eé]pend|Hängt|Dipende|Zależy|Wymaga|Зависит|Предзависит|Залежить|Bağımlılık|Beroende|"
    r"Afhankelijk|依赖|依賴|預先依賴|依存|의존)"
)


@parses(
    r"^[ \t]*(?:(?P<name>[a-z0-9][\w.+:-]*) ?: )?"
    rf"(?:Pre)?{_DEPENDS}[^\s:]*(?: \w+){{0,2}} ?: ?(?P<wanted>[a-z0-9][\w.+:-]*)"
    r"(?: \((?P<relation><<|<=|=|>=|>>) ?(?P<version>[^)\s]+)\))?(?P<rest>.*)$",
    "Depends:", "Depends :", "Dépend :", "Dépend: ", "Hängt ab", "Dipende", "依赖", "依賴",
    "Depende:", "Zależy", "Wymaga", "ависит", "Залежить", "Bağımlılık", "Beroende", "Afhankelijk", "依存", "의존",
)  # fmt: skip
def unmet(found: re.Match[str], at: Place) -> Unmet:
    """Recognise a line of apt's list, in some languages of the people who report."""
    rest = found["rest"]
    other = re.search(r"(?<![\w.])(\d+[\w.+~:-]*\d[\w.+~:-]*)", rest)
    why = "other" if other else "absent" if _NOBODY.search(rest) else "refused" if rest.strip() else "unknown"
    return Unmet(
        place=at, name=(found["name"] or "").partition(":")[0], wanted=found["wanted"].partition(":")[0], relation=found["relation"],
        version=found["version"], why=why, other=other[1] if other else None,
    )  # fmt: skip


class Overwrite(Event):
    """dpkg or rpm will not write a file that another package owns; `shared` when it is another architecture of the same package."""

    file: str
    package: str | None
    shared: bool = False
    both: bool = False
    """Whether neither is installed yet: both are to be."""


class ImpossibleRequest(Event):
    """apt sees no way to what was asked for; `held` where it blames held packages, as it does whether or not any is held."""

    held: bool


@parses(
    r"(?P<held>you have held broken packages|requested an impossible situation)|"
    r"(?P<zh>要求系统强制卸载|处于“受阻”状态的软件包|無法修正問題)|"
    r"paquets défectueux|defekte Pakete|paquetes rotos retenidos|pacotes (?:retidos )?quebrados|pacchetti danneggiati|uszkodzone pakiety|"
    r"сломанные пакеты|зламані пакунки|変更禁止パッケージ|망가진 고정",
    "held broken packages", "impossible situation", "paquets défectueux", "defekte Pakete", "paquetes rotos", "無法修正問題", "软件包要求",
    "quebrados", "pacchetti danneggiati", "uszkodzone pakiety", "сломанные пакеты", "зламані пакунки", "変更禁止", "망가진 고정",
    "状态的软件包",
)  # fmt: skip
def impossible(found: re.Match[str], at: Place) -> ImpossibleRequest:
    """Recognise apt's last word, in some languages."""
    return ImpossibleRequest(place=at, held=found[0] != "requested an impossible situation")


class Conflict(Event):
    """Two packages exclude each other, and both are wanted."""

    name: str
    other: str


@parses(
    r"^[ \t]*(?P<name>[a-z0-9][\w.+:-]*) ?: ?(?:Conflicts|Breaks) ?: ?(?P<other>[a-z0-9][\w.+-]*)",
    ": Conflicts: ", ": Breaks: ", "Conflicts:", "Breaks:",
)  # fmt: skip
def conflict(found: re.Match[str], at: Place) -> Conflict | None:
    """Recognise a line of apt's list; a package that breaks itself does so for another architecture."""
    if found["name"].partition(":")[0] == found["other"]:
        return None
    return Conflict(place=at, name=found["name"].partition(":")[0], other=found["other"])


class HeldChange(Event):
    """apt would have to change packages that were told to stay as they are."""


@parses(r"Held packages were changed|The following held packages will be changed", "Held packages were", "following held packages")
def held_change(found: re.Match[str], at: Place) -> HeldChange:
    """Recognise that apt refuses, or asks."""
    return HeldChange(place=at)


class VersionNotFound(Event):
    """A package is known, and not in the version that was asked for."""

    name: str
    version: str


_QUOTED = r"['\"`‘’“”„»«]"


@parses(
    rf"(?:Version|La version|Versión|La versión) ?{_QUOTED} ?(?P<version>\d[^'\"’”«»\s]*) ?{_QUOTED} "
    rf"(?:for|for package|de|für|para|of) ?{_QUOTED} ?(?P<name>[a-z0-9][\w.+:-]*) ?{_QUOTED}",
    "was not found", "n'a pu être trouvée", "n’a pu être trouvée", "n'a pas été trouvée", "wurde nicht gefunden",
    "konnte nicht gefunden", "no se encontró", "No se encontró",
    lines=2,
)  # fmt: skip
def version_not_found(found: re.Match[str], at: Place) -> VersionNotFound:
    """Recognise apt's sentence in English, French, German and Spanish."""
    return VersionNotFound(place=at, name=found["name"].partition(":")[0], version=found["version"])


@parses(
    rf"(?:未找到|沒有找到) ?{_QUOTED}(?P<name>[a-z0-9][\w.+:-]*){_QUOTED} ?的 ?{_QUOTED}(?P<version>\d[^'\"’”]*){_QUOTED} ?版本",
    "未找到",
    "沒有找到",
)
def version_not_found_zh(found: re.Match[str], at: Place) -> VersionNotFound:
    """Recognise it in Chinese."""
    return VersionNotFound(place=at, name=found["name"].partition(":")[0], version=found["version"])


@parses(
    r"(?:No match for argument|No package|Unable to find a match|Aucun argument correspondant|未找到匹配的参数) ?:? ?"
    r"(?P<name>[a-z][\w.+-]*?)-(?P<version>\d+(?:\.\d+)+\S*)",
    "No match for argument", "No package ", "Unable to find a match", "未找到匹配的参数",
)  # fmt: skip
def version_not_found_by_dnf(found: re.Match[str], at: Place) -> VersionNotFound:
    """Recognise that dnf or yum has no package of a name with a version in it."""
    return VersionNotFound(place=at, name=found["name"], version=found["version"])


@parses(
    r"(?:Package|No provider of) '(?P<name>[a-z][\w.+-]*?) ?= ?(?:\d+:)?(?P<version>\d[^'\s]*)' (?:not )?found",
    "No provider of", "' not found",
)  # fmt: skip
def version_not_found_by_zypper(found: re.Match[str], at: Place) -> VersionNotFound:
    """Recognise that zypper has no package of a name in that version."""
    return VersionNotFound(place=at, name=found["name"], version=found["version"])


@parses(r"'(?P<file>/[^']+)', which is also in package (?P<package>\S+)", "which is also in package", lines=2)
def overwrite(found: re.Match[str], at: Place) -> Overwrite:
    """Recognise the quarrel of two packages."""
    return Overwrite(place=at, file=found["file"], package=found["package"].partition(":")[0])


@parses(
    r"['\"`‘“«»] ?(?P<file>/[^'\"’”«»]+?) ?['\"’”«»][^\n]{0,80}?"
    r"(?:other instances of package|autres instances du paquet|anderen Instanzen des Paket\w+|otras instancias del paquetes?|"
    r"outras instâncias d[eo] pacote|altre istanze del pacchetto|других экземпляров пакета|软件包) (?P<package>[a-z0-9][\w.+-]*)(?::\w+)?",
    "other instances of", "autres instances du", "anderen Instanzen", "otras instancias", "outras instâncias", "altre istanze",
    "других экземпляров", "的其他实例",
    lines=2,
)  # fmt: skip
def overwrite_shared(found: re.Match[str], at: Place) -> Overwrite:
    """Recognise the quarrel of two architectures of one package, in some languages."""
    return Overwrite(place=at, file=found["file"], package=found["package"], shared=True)


@parses(
    r"/(?:\d+-)?(?P<archive>[a-z0-9][\w.+-]*)_[^\s_]+_(?P<arch>\w+)\.deb \(--(?:unpack|install)\) ?:(?:[^\n]{0,120}\n)?[^\n]{0,120}?"
    r"['\"`‘’“„«»]? ?(?P<file>/(?!\S*\.deb\b)[^\s'\"’”«»]+)(?=[\s'\"’”«»])[^\n]{0,200}?(?<![\w.+-])(?:(?P=archive):(?P=arch)(?![\w.+-])|"
    r"(?P<package>[a-z][\w.+-]*\w)(?::\w+)? (?P<version>\d[\w.+:~-]*))",
    "(--unpack)", "(--install)",
    lines=2,
)  # fmt: skip
def overwrite_in_any_language(found: re.Match[str], at: Place) -> Overwrite | None:
    """Recognise both quarrels by what is not translated: the archive, the path, and the package that has the file already."""
    if any(word in at.text for word in ("which is also in package", "other instances of")):
        return None
    return Overwrite(place=at, file=found["file"], package=found["package"] or found["archive"], shared=found["package"] is None)


class ArchitecturesDiffer(Event):
    """A package cannot stand beside its sister of another architecture, which has another version."""

    package: str
    version: str
    other: str


@parses(
    r"package (?P<package>[\w.+-]+):\w+ (?P<version>\S+) cannot be configured because \S+ is at a different version \((?P<other>\S+)\)",
    "is at a different version", "cannot be configured because",
    lines=2,
)  # fmt: skip
def architectures_differ(found: re.Match[str], at: Place) -> ArchitecturesDiffer:
    """Recognise dpkg's sentence."""
    return ArchitecturesDiffer(place=at, package=found["package"], version=found["version"], other=found["other"])


@parses(
    r"^[ \t]*(?P<package>[a-z0-9][\w.+-]*)(?::\w+)? ?: ?(?:Breaks|Casse|Beschädigt|Rompe|Ломает|破坏) ?[:：] ?(?P=package)(?::\w+)? "
    r"\(!= ?(?P<version>[^)\s]+)\)[^\n\d]*(?P<other>\d[\w.+~:-]*\w)",
    "Breaks:", ": Casse", "Beschädigt:", ": Rompe", "Ломает:", ": 破坏",
)  # fmt: skip
def architectures_differ_in_plan(found: re.Match[str], at: Place) -> ArchitecturesDiffer:
    """Recognise a line of apt's list, in some languages: a package breaks the same one of another architecture in another version."""
    return ArchitecturesDiffer(place=at, package=found["package"], version=found["version"], other=found["other"])
