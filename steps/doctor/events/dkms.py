"""What DKMS, make and NVIDIA's installer say when a module is built."""

from __future__ import annotations

import re

from steps.doctor.events.base import Event, parses
from steps.doctor.told import Place

_KERNEL = r"(?P<kernel>\d+\.\d+[\w.+~-]*?\w)"
_MODULE = r"(?P<module>[a-z][\w-]*?)[/-](?P<version>\d[\w.~-]*)"


class HeadersMissing(Event):
    """The headers of a kernel are not there; `incomplete` when its folder is, and lacks a generated file."""

    kernel: str | None
    module: str | None = None
    incomplete: bool = False


@parses(
    rf"kernel headers (?:for|of) kernel {_KERNEL} cannot be found|"
    rf"(?:(?:Module build|autoinstall) for kernel {_KERNEL.replace('kernel', 'skipped')}|"
    r"Module build for the currently running kernel) was skipped "
    r"since the kernel (?:headers|source)|"
    rf"Missing {_KERNEL.replace('kernel', 'missed')} kernel headers for module {_MODULE}",
    "kernel headers for", "was skipped since", "Module build for", "autoinstall for kernel", "Your kernel headers",
    lines=3,
)  # fmt: skip
def headers_missing(found: re.Match[str], at: Place) -> HeadersMissing:
    """Recognise DKMS of all ages, and the hook of Arch."""
    return HeadersMissing(place=at, kernel=found["kernel"] or found["skipped"] or found["missed"], module=found["module"])


@parses(
    rf"Unable to find the kernel source tree|Could not find files needed to compile modules for {_KERNEL}|"
    rf"development files for kernel {_KERNEL.replace('kernel', 'devel')} or the appropriate|"
    rf"Kernel headers for target kernel {_KERNEL.replace('kernel', 'target')} not found",
    "kernel source tree", "Could not find files needed", "development files for kernel", "headers for target kernel",
    lines=2,
)  # fmt: skip
def sources_missing(found: re.Match[str], at: Place) -> HeadersMissing:
    """Recognise NVIDIA's installer and akmods."""
    return HeadersMissing(place=at, kernel=found["kernel"] or found["devel"] or found["target"])


@parses(r"\*\*\* /lib/modules/(?P<kernel>[^/\s'’]+)/build: (?!No such)[^\n]+", "/build: ")
def build_folder_missing_translated(found: re.Match[str], at: Place) -> HeadersMissing:
    """Recognise that make stops at the folder, in any language."""
    return HeadersMissing(place=at, kernel=found["kernel"])


@parses(
    r"/lib/modules/(?P<kernel>[^/\s'’]+)/build(?:/include/(?:generated|linux|config)/[^\s\"]+?\.(?:h|conf))?['’\"]?:? "
    r"(?:No such file or directory|does not exist|Entering|\*\*\*)[^\n]*",
    "/build: No such file", "/build': No such file", "/build’: No such file", "/build/include/",
)  # fmt: skip
def build_folder_missing(found: re.Match[str], at: Place) -> HeadersMissing | None:
    """Recognise make's and the compiler's word for a folder or a generated header that is not there."""
    if "Entering" in found[0]:
        return None
    return HeadersMissing(place=at, kernel=found["kernel"], incomplete="/include/" in found[0])


@parses(
    r"^(?!.*\becho >&2).*(?:Kernel configuration is invalid|include/config/auto\.conf are missing)|"
    r": (?:fatal error|schwerwiegender Fehler|erreur fatale|error fatal|错误|致命错误|致命的エラー|[^\n:]{4,24}):? (?:include/)?"
    r"generated/(?:autoconf|utsrelease|bounds|asm-offsets|timeconst)\.h\b|"
    r"No rule to make target '[^'\n]*\binclude/(?:config/auto\.conf|generated/\S+)'",
    "Kernel configuration is invalid", "auto.conf are missing", "generated/autoconf.h", "generated/utsrelease.h", "generated/bounds.h",
    "generated/asm-offsets.h", "generated/timeconst.h", "No rule to make target 'include",
)  # fmt: skip
def configuration_missing(found: re.Match[str], at: Place) -> HeadersMissing:
    """Recognise Kbuild's and the compiler's word for headers that were never prepared; a command that make prints is no word of its own."""
    return HeadersMissing(place=at, kernel=None, incomplete=True)


class BuildFailed(Event):
    """A module was not built; `kernel` and `module` where they are named."""

    kernel: str | None = None
    module: str | None = None
    version: str | None = None


@parses(
    rf"(?:Bad return status for module build on kernel|Build of \S+ failed for|"
    rf"Module build for kernel {_KERNEL.replace('kernel', 'other')} failed): ?{_KERNEL}?",
    "Bad return status for", "failed for: ", "Build of ",
)  # fmt: skip
def build_failed(found: re.Match[str], at: Place) -> BuildFailed:
    """Recognise DKMS's last word."""
    named = re.search(r"Build of (nvidia|amdgpu)", found[0])
    return BuildFailed(place=at, kernel=found["kernel"], module=named[1] if named else None)


@parses(
    rf"dkms (?:install|build|autoinstall)[^\n]{{0,80}}? {_MODULE} -k {_KERNEL}[^\n]{{0,200}}['’`] ?exited (?P<status>\d+)",
    "' exited ", "’ exited ", "` exited ",
)  # fmt: skip
def build_exited(found: re.Match[str], at: Place) -> BuildFailed:
    """Recognise the hook of Arch."""
    return BuildFailed(place=at, kernel=found["kernel"], module=found["module"], version=found["version"])


@parses(r"\(bad exit status: \d+\)", "bad exit status: ")
def build_status(found: re.Match[str], at: Place) -> BuildFailed:
    """Recognise the step that failed; what it was for stands around it: NVIDIA's makefiles alone take variables that begin so."""
    kernel = re.search(r"(?:KERNEL_UNAME|KERNELVER|KVER|kernelver)=(\S+)", at.text)
    ours = re.search(r"\bNV_(?:VERBOSE|EXCLUDE\w*|KERNEL\w*)=|\bIGNORE_XEN_PRESENCE=", at.text)
    return BuildFailed(place=at, kernel=kernel[1] if kernel else None, module="nvidia" if ours else None)


@parses(
    r"Unable to build the NVIDIA kernel module|performing the step: \"Building kernel modules\"|"
    r"Building kernel modules[^\n]*(?:failed|error)|The kernel module failed to (?:build|compile)|"
    r"installed (?P<package>(?:nvidia-(?:dkms|kernel|open)|amdgpu-dkms)\S*) package post-installation script subprocess returned "
    r"error exit status 10|Building rpms failed|Failed to (?:build|compile) (?:the )?akmod|"
    r"(?P<akmod>\bakmod-nvidia\S{0,60})(?!\S)[^\n]* failed",
    "build the NVIDIA kernel", "Building kernel modules", "kernel module failed to", "error exit status 10", "Building rpms failed",
    "akmod-nvidia", "compile akmod", "build akmod",
    lines=2,
)  # fmt: skip
def package_build_failed(found: re.Match[str], at: Place) -> BuildFailed:
    """Recognise NVIDIA's installer, dpkg's word for a DKMS package, and akmods."""
    return BuildFailed(place=at, module="amdgpu" if "amdgpu" in found[0] else "nvidia")


@parses(
    rf"[Aa]utoinstall on {_KERNEL}\S* failed for (?:module\(s\) )?[^\n]*?\b(?P<module>nvidia|amdgpu)[\w-]*\(10\)|"
    r"DKMS module '(?P<void>nvidia|amdgpu)[\w-]*-(?P<version>\d[\w.~-]*)' failed to build|"
    rf"Building DKMS module '(?P<now>nvidia|amdgpu)[\w-]*' for kernel-{_KERNEL.replace('kernel', 'other')}[. ]*FAILED",
    "utoinstall on ", "failed to build", "Building DKMS module",
)  # fmt: skip
def build_summed_up(found: re.Match[str], at: Place) -> BuildFailed:
    """Recognise the summary of DKMS 3.1, where 10 stands for a failed build, and Void's hook."""
    return BuildFailed(
        place=at,
        kernel=found["kernel"] or found["other"],
        module=found["module"] or found["void"] or found["now"],
        version=found["version"],
    )


class BuildLog(Event):
    """A text names the DKMS tree of a module: that is what was built."""

    module: str
    version: str


@parses(r"/var/lib/dkms/(?P<module>nvidia[\w-]*|amdgpu[\w-]*)/(?P<version>\d[\w.~-]*)", "/var/lib/dkms/")
def build_log(found: re.Match[str], at: Place) -> BuildLog:
    """Recognise the path."""
    return BuildLog(place=at, module=found["module"], version=found["version"])


@parses(
    r"dkms (?:install|build|add|autoinstall)[^\n]*? -m (?P<module>nvidia|amdgpu)[\w-]*(?:/| +-v +)(?P<version>\d[\w.:~+-]*)",
    "dkms install", "dkms build", "dkms add",
    typed=True,
)  # fmt: skip
def build_asked(found: re.Match[str], at: Place) -> BuildLog:
    """Recognise a command with the module and its version in options."""
    return BuildLog(place=at, module=found["module"], version=found["version"])


@parses(
    r"(?:Setting up|Processing|Loading new|Building module:?|dkms (?:install|build|add)[^\n]*?) "
    r"(?P<module>nvidia|amdgpu)(?:-(?:dkms|current|srv|open|kernel))*[\w-]*?[ /-]\(?(?P<version>\d[\w.:~+-]*)",
    "etting up nvidia", "etting up amdgpu", "oading new nvidia", "oading new amdgpu", "dkms install", "dkms build",
    typed=True,
)  # fmt: skip
def build_named(found: re.Match[str], at: Place) -> BuildLog | None:
    """Recognise a package or a command that builds a module."""
    wanted = re.search(r"dkms|kernel-source|kernel-open|current|srv", found[0])
    return BuildLog(place=at, module=found["module"], version=found["version"]) if wanted else None


class CodeError(Event):
    """The compiler rejected code of the driver."""

    file: str


@parses(
    r"(?P<file>(?:/\S*dkms/(?:nvidia|amdgpu)|/(?:var/)?tmp/amd\.\w+/|\S*/NVIDIA-Linux-|/usr/src/(?:nvidia|amdgpu)|\S*open-gpu-kernel-modules|\S*\bkernel-open/|"
    r"nvidia(?:-\w+)?/|(?<![\w/.])amd/(?:amdgpu|amdkcl|amdkfd|display|backport)/)\S*?\.[ch]):\d+(?::\d+)?: "
    r"(?:fatal )?error: (?!unrecognized|unknown arg)[^\n]*",
    ": error: ", ": fatal error: ",
)  # fmt: skip
def code_error(found: re.Match[str], at: Place) -> CodeError:
    """Recognise an error at a place in the driver's source."""
    return CodeError(place=at, file=found["file"])


@parses(
    r"modpost: GPL-incompatible module (?P<file>(?:nvidia|amdgpu)[\w-]*\.ko) uses GPL-only symbol|"
    r"modpost: \"\w+\" \[(?P<undefined>\S*(?:nvidia|amdgpu)[\w-]*\.ko)\] undefined",
    "modpost: GPL-incompatible", 'modpost: "',
)  # fmt: skip
def symbol_refused(found: re.Match[str], at: Place) -> CodeError:
    """Recognise that a kernel does not lend the driver a function that its source calls."""
    return CodeError(place=at, file=found["file"] or found["undefined"])


class MakeStopped(Event):
    """make gave up on a part of the driver; what stopped it may stand above, or be cut off."""

    file: str
    module: str
    version: str | None = None


@parses(
    r"\*\*\* \[(?:\S+?: )?(?:_?module_?)?(?P<file>(?:/\S*dkms/(?P<module>nvidia|amdgpu)[\w-]*/(?P<version>\d[\w.~-]*)|"
    r"/\S*?/NVIDIA-Linux-\w+-(?P<run>\d[\d.]+\d)|"
    r"/usr/src/(?P<tree>nvidia|amdgpu)[\w-]*?-(?P<release>\d[\d.]+\d))[^\s\]]*)(?:: [^\]\n]*)?\] "
    r"(?:Error|Fehler|Erreur|Errore|Erro|Ошибка|错误|錯誤|エラー|오류) ?\d+",
    "*** [",
)  # fmt: skip
def make_stopped(found: re.Match[str], at: Place) -> MakeStopped:
    """Recognise make of all ages, whose word for an error is translated."""
    version = found["version"] or found["run"] or found["release"]
    return MakeStopped(place=at, file=found["file"], module=found["module"] or found["tree"] or "nvidia", version=version)


@parses(
    r"(?P<file>/var/lib/dkms/(?P<module>nvidia|amdgpu)[\w-]*/(?P<version>\d[\w.~-]*)/build/(?:\S*/)?(?:Makefile|Kbuild)\S*):\d+: \*\*\* "
    r"(?!No rule)[^\n]+",
    "Makefile:", "Kbuild:",
)  # fmt: skip
def makefile_stopped(found: re.Match[str], at: Place) -> MakeStopped:
    """Recognise that a makefile of the driver's own gives up: it found a kernel that it is not for."""
    return MakeStopped(place=at, file=found["file"], module=found["module"], version=found["version"])


@parses(
    r"^Title: (?P<package>(?:nvidia|amdgpu|rock)[\w-]*) (?P<version>\S+): \S+ kernel module failed to build",
    "kernel module failed to build",
)
def build_reported(found: re.Match[str], at: Place) -> BuildFailed:
    """Recognise the report that apport writes of a failed build."""
    module = "nvidia" if found["package"].startswith("nvidia") else "amdgpu"
    return BuildFailed(place=at, module=module, version=found["version"].partition(":")[2] or found["version"])


class OptionRefused(Event):
    """A compiler does not know an option that it was given."""

    option: str


@parses(
    r"(?:unrecognized|unrecognised|unknown) (?:command[- ]line option|argument|option):? ?['‘’\"`](?P<option>-[^'’\"`\s]+)|"
    r"unsupported (?:option|argument) ['‘’\"`](?P<clang>-?[^'’\"`\s]+)['’\"`]|"
    r"(?:nicht erkannte Kommandozeilenoption|option de ligne de commande non reconnue|无法识别的命令行选项)"
    r"\s*[»«“‘'\"]? ?(?P<named>-[^’'\"»”«\s]+)",
    "unrecognized command", "unrecognised command", "unknown argument", "unknown option", "unsupported option", "unsupported argument",
    "Kommandozeilenoption", "de commande non reconnue", "无法识别的命令行选项",
)  # fmt: skip
def option_refused(found: re.Match[str], at: Place) -> OptionRefused:
    """Recognise gcc and clang."""
    return OptionRefused(place=at, option=found["option"] or found["clang"] or found["named"])


class KernelBuiltBy(Event):
    """The compiler that a kernel was built with, by the first number of its version."""

    major: str


@parses(
    r"The kernel was built by: +\S*gcc\S* \([^\n)]*\) (?P<major>\d+)\.|"
    r"compiler used to compile the kernel:?\s+gcc version (?P<nvidia>\d+)\.",
    "The kernel was built by", "used to compile the kernel",
    lines=2,
)  # fmt: skip
def kernel_built_by(found: re.Match[str], at: Place) -> KernelBuiltBy:
    """Recognise Kbuild's warning and that of NVIDIA's installer."""
    return KernelBuiltBy(place=at, major=found["major"] or found["nvidia"])


class BuildFor(Event):
    """The head of DKMS's log: which module is built, and for which kernel."""

    module: str
    kernel: str


@parses(rf"DKMS make\.log for {_MODULE} for kernel {_KERNEL}(?= \(|\s*$)", "make.log for")
def build_for(found: re.Match[str], at: Place) -> BuildFor:
    """Recognise it."""
    return BuildFor(place=at, module=found["module"], kernel=found["kernel"])


class DkmsTreeBroken(Event):
    """DKMS stops because an entry of its tree has no sources any more."""

    path: str | None
    module: str | None
    version: str | None


@parses(
    r"Could not locate dkms\.conf file\.?(?: File: (?P<path>\S+))?|(?P<conf>/var/lib/dkms/\S+/dkms\.conf) does not exist|"
    r"(?P<entry>[\w-]+/v?\d[\w.~-]*): Missing the module source directory",
    "locate dkms.conf", "dkms.conf does not", "the module source directory",
    lines=2,
)  # fmt: skip
def tree_broken(found: re.Match[str], at: Place) -> DkmsTreeBroken:
    """Recognise what DKMS says of it."""
    path = found["path"] or found["conf"]
    named = re.search(r"(?:dkms/)?([\w-]+)/(v?\d[\w.~-]*)", path or found["entry"] or "")
    return DkmsTreeBroken(place=at, path=path, module=named[1] if named else None, version=named[2] if named else None)
