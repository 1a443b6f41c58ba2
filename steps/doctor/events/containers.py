"""What container engines, their hooks, CDI and WSL say."""

from __future__ import annotations

import re
from typing import Literal

from steps.doctor.events.base import Event, parses
from steps.doctor.told import Place


class NoGpuRuntime(Event):
    """The engine that answers knows no way to give a container a GPU; `cdi` where it was asked for a device by CDI's name."""

    cdi: bool = False


@parses(
    r"could not select device driver(?: ['\"]+(?:nvidia|(?P<cdi>cdi))?['\"]+)? with capabilities|"
    r"[Uu]nknown (?:or invalid )?runtime(?: name| specified)?:? ['\"]?nvidia|"
    r"failed to discover GPU vendor from CDI|"
    r"runtime ['\"]?nvidia['\"]? (?:not found|is not (?:installed|configured))|no runtime for ['\"]?nvidia['\"]? is configured",
    "could not select device driver", "nknown runtime", "nknown or invalid runtime", 'runtime "nvidia', "runtime nvidia", "no runtime for",
    "GPU vendor from CDI",
)  # fmt: skip
def no_gpu_runtime(found: re.Match[str], at: Place) -> NoGpuRuntime:
    """Recognise Docker's and containerd's sentences."""
    return NoGpuRuntime(place=at, cdi=found["cdi"] is not None)


class HookFailed(Event):
    """nvidia-container-cli could not set a container up; `reason` is what it names."""

    reason: Literal["no-library", "timeout", "no-device", "requirement", "mismatch", "other"]
    wanted: str | None = None
    device: str | None = None
    """The GPU that was asked for and is not there."""


@parses(
    r"nvidia-container-cli: (?:initialization error: |requirement error: |detection error: |mount error: |"
    r"device error: )?(?P<text>[^\n]{0,200})",
    "nvidia-container-cli: ",
    lines=2,
)  # fmt: skip
def hook_failed(found: re.Match[str], at: Place) -> HookFailed:
    """Recognise the tool's errors."""
    text = found["text"]
    wanted = re.search(r"cuda ?>= ?(\d+\.\d+)", found[0])
    device = re.search(r"device error: (?:unknown device id: )?(?P<id>\d+|(?:GPU|MIG)-[\w/-]+)", found[0])
    reason: Literal["no-library", "timeout", "no-device", "requirement", "mismatch", "other"] = (
        "no-library" if "load library failed" in text or "libnvidia-ml.so" in text
        else "timeout" if "timed out" in text
        else "requirement" if wanted or "unsatisfied condition" in text
        else "mismatch" if "mismatch" in text
        else "no-device" if "unknown device" in text or "driver error: failed" in text or "no devices" in text.lower()
        else "other"
    )  # fmt: skip
    return HookFailed(
        place=at,
        reason=reason,
        wanted=wanted[1] if wanted else None,
        device=device["id"] if device and "unknown device" in found[0] else None,
    )


class CgroupsLeft(Event):
    """The hook's configuration says that it leaves the device cgroups alone."""


@parses(r"^\s*no-cgroups *= *true", "no-cgroups")
def cgroups_left(found: re.Match[str], at: Place) -> CgroupsLeft:
    """Recognise the option where a person shows it; a line behind a # says nothing."""
    return CgroupsLeft(place=at)


class DeviceRules(Event):
    """The rules of a container's device cgroup; `made` when the GPU's nodes (195) may only be made, and not be read or written."""

    made: bool


@parses(r"^c 195:(?:\*|\d+) (?P<may>[rwm]{1,3})$", "c 195:*", "c 195:0", "c 195:2")
def device_rules(found: re.Match[str], at: Place) -> DeviceRules:
    """Recognise a line of devices.list."""
    return DeviceRules(place=at, made=found["may"] == "m")


class CdiRefused(Event):
    """The engine does not resolve CDI devices, or cannot read the specification; `parsing` when it says that it cannot."""

    parsing: bool = False


@parses(
    r"unresolvable CDI devices?|failed to parse CDI Spec|failed to unmarshal CDI|CDI device injection failed|(?:open|"
    r"read) \S*/cdi/\S+: permission denied|"
    r"CDI spec\w* [^\n]{0,60}(?:invalid|permission denied|unknown field)",
    "CDI", "/cdi/",
)  # fmt: skip
def cdi_refused(found: re.Match[str], at: Place) -> CdiRefused:
    """Recognise what podman, Docker and containerd say."""
    text = found[0]
    return CdiRefused(
        place=at, parsing="pars" in text or "unmarshal" in text or "permission" in text or "unknown field" in text or "invalid" in text
    )


class FileGone(Event):
    """A container could not be started since a file or node of the driver is not where the specification says.

    `version` is the driver's in the file's name, `None` for a name without one or with a version of its own.
    """

    path: str
    version: str | None = None


_OF_DRIVER = r"(?:lib(?:nvidia|cuda|nv)|lib\w+_nvidia|nvidia_(?:drv|icd|layers)|nvidia-|gsp_|/dri/(?:card|render)|/dev/nvidia|nvoptix)"


@parses(
    rf"(?:\b(?:l?stat|statfs|mount(?:ing)?|open|fulfil\w*)\b|error stat'ing(?: file)?|no such file or directory: ?)"
    rf"[^\n/]{{0,60}}?(?P<path>/[^\s\"'`:,]*{_OF_DRIVER}[^\s\"'`:,]*)[\"'`:,]*(?:[^\n]{{0,200}}?)no such file",
    "libnv", "libcuda.so", "_nvidia", "gsp_", "nvidia-", "/dev/dri/", "/dev/nvidia", "nvoptix",
    flags=re.IGNORECASE,
)  # fmt: skip
def file_gone(found: re.Match[str], at: Place) -> FileGone:
    """Recognise runc's, crun's and the CDI injector's words about a library that an update removed, or a node that has another name now."""
    version = re.search(r"(?:\.so\.|/)(\d{3}\.\d+(?:\.\d+)*)", found["path"])
    return FileGone(place=at, path=found["path"], version=version[1] if version else None)


class BindMounted(Event):
    """dpkg in a container met a library of the host's driver."""


@parses(
    r"unable to make backup link of ['\"]?\./?\S*(?:libnvidia|libcuda|nvidia)\S*['\"]? .{0,80}(?:cross-device link|"
    r"Device or resource busy|Invalid cross)|"
    r"(?:libnvidia|libcuda|nvidia)[^\n]{0,160}(?:Invalid cross-device link|Device or resource busy)",
    "cross-device link", "resource busy",
    lines=3,
    flags=re.DOTALL,
)  # fmt: skip
def bind_mounted(found: re.Match[str], at: Place) -> BindMounted:
    """Recognise dpkg's refusal."""
    return BindMounted(place=at)


class Denied(Event):
    """SELinux denied a domain of containers the use of a GPU's device."""


_DEVICES = r"(?:nvidia(?!-container)|xserver_misc_device_t|dri_device_t|hsa_device_t|/dev/dri|/dev/kfd)"


@parses(
    r"avc: +denied[^\n]{0,400}scontext=\S*:(?:container\w*_t|spc_t|svirt_lxc\w*_t)[^\n]{0,300}|"
    r"SELinux is preventing [^\n]{0,160} on the (?:chr_file|character device|fichero|Datei|fichier)[^\n]{0,120}|"
    r"Source Context +\S*:(?:container\w*_t|spc_t|svirt_lxc\w*_t)\S*\s+Target Context +\S+\s+Target Objects +[^\n]+",
    "avc: ", "SELinux is preventing", "Source Context",
    lines=3,
)  # fmt: skip
def denied(found: re.Match[str], at: Place) -> Denied | None:
    """Recognise an AVC or a sealert record that speaks of the devices; what a container may not do with files is another matter."""
    return Denied(place=at) if re.search(_DEVICES, found[0]) else None


class DesktopContext(Event):
    """The docker command talks to Docker Desktop."""


@parses(
    r"desktop-linux|docker-desktop|\.docker/desktop/docker\.sock|Docker Desktop",
    "desktop-linux",
    "docker-desktop",
    "/desktop/docker.sock",
    "Docker Desktop",
)
def desktop_context(found: re.Match[str], at: Place) -> DesktopContext | None:
    """Recognise the context by its name or its socket; a list marks the one in use with a star."""
    listed = re.match(r"(?:desktop-linux|default)(?P<star> ?\*)?(?: {2,}|\t)", at.text)
    return None if listed is not None and not listed["star"] else DesktopContext(place=at)


class ToolMissing(Event):
    """nvidia-smi is not there."""


@parses(
    r"nvidia-smi: (?:command )?not found|[Cc]ommand ['‘]nvidia-smi['’] not found|command not found: nvidia-smi|"
    r"Unknown command:? ['\"]?nvidia-smi|nvidia-smi: (?:未找到命令|找不到命令|找不到指令|Befehl nicht gefunden|Kommando nicht gefunden|"
    r"commande introuvable|orden no encontrada|no se encontró la orden|comando não encontrado|comando non trovato|команда не найдена|"
    r"コマンドが見つかりません|명령어를 찾을 수 없음)|(?:exec|executable file)[^\n]{0,30}[\"']?nvidia-smi[\"']?: [^\n]{0,40}not found|"
    r"nvidia-smi: No such file",
    "nvidia-smi: ", '"nvidia-smi"', "'nvidia-smi' not found", "‘nvidia-smi’ not found", "not found: nvidia-smi", "command: nvidia-smi",
)  # fmt: skip
def tool_missing(found: re.Match[str], at: Place) -> ToolMissing:
    """Recognise the shells' words, in some languages, and the engine's."""
    return ToolMissing(place=at)


class DxgNoise(Event):
    """WSL's graphics driver logs a call that it does not know."""


@parses(
    r"dxgk: dxgkio_\w+: Ioctl failed: -\d+",
    "dxgkio_",
)
def dxg_noise(found: re.Match[str], at: Place) -> DxgNoise:
    """Recognise a line of dxgkrnl."""
    return DxgNoise(place=at)


class NotSymlink(Event):
    """ldconfig in WSL found a copy where a link is usual."""


@parses(
    r"/usr/lib/wsl/\S*libcuda\.so\.1 is not a symbolic link",
    "is not a symbolic link",
)
def not_symlink(found: re.Match[str], at: Place) -> NotSymlink:
    """Recognise ldconfig's remark."""
    return NotSymlink(place=at)


class CountersForbidden(Event):
    """A profiler may not read the GPU's counters, or a tool may not set what only root may."""


@parses(
    r"ERR_NVGPUCTRPERM|CUPTI_ERROR_INSUFFICIENT_PRIVILEGES|RmProfilingAdminOnly: 1|cupti\w+[^\n]{0,60}\) failed with error 35\b|"
    r"does not have permission to access NVIDIA GPU Performance Counters|have sufficient privileges to expose profiling metrics|"
    r"requires? (?:root|admin\w*) (?:privileges|permissions?)[^\n]{0,40}(?:fan|clock|power)",
    "NVGPUCTRPERM",
    "INSUFFICIENT_PRIVILEGES",
    "RmProfilingAdminOnly",
    "GPU Performance Counters",
    "privileges",
    "permissions to",
    "failed with error 35",
)
def counters_forbidden(found: re.Match[str], at: Place) -> CountersForbidden:
    """Recognise Nsight's, ncu's and CUPTI's words, and the driver's setting."""
    return CountersForbidden(place=at)


class OperationRefused(Event):
    """One operation on a card was refused, after NVML had started."""


@parses(
    r"(?:[Uu]nable to|[Ff]ailed to|[Cc]annot|[Ss]etting|[Rr]esetting) (?!initialize|init\b|determine|properly)[^\n]{3,140}?"
    r"(?:Insufficient [Pp]ermissions?|NVML_ERROR_NO_PERMISSION)|"
    r"does not have permission to (?:change|set|reset|modify|profile)[^\n]{0,60}|"
    r"nvmlDevice(?:Set|Reset|Clear|Modify)\w{1,60}\b.{0,500}?(?:Insufficient Permissions|NVMLError_NoPermission)",
    "nsufficient permission", "nsufficient Permission", "NO_PERMISSION", "does not have permission to", "nvmlDeviceSet", "nvmlDeviceReset",
    lines=10,
    flags=re.DOTALL,
)  # fmt: skip
def operation_refused(found: re.Match[str], at: Place) -> OperationRefused:
    """Recognise nvidia-smi's and NVML's users' refusals to set or count something."""
    return OperationRefused(place=at)


class ReadingTold(Event):
    """A tool printed a reading of a card: it could open it."""


@parses(
    r"(?:[Ff]an speed|[Tt]emperature|[Pp]ower(?: draw)?|[Dd]evice name|GPU name)\b ?:? ?\d|Device name ?: ?NVIDIA",
    "an speed",
    "emperature ",
    "emperature:",
    "evice name",
    "ower draw",
)
def reading_told(found: re.Match[str], at: Place) -> ReadingTold:
    """Recognise a name, a temperature or a fan speed."""
    return ReadingTold(place=at)


class OperatorDriver(Event):
    """The GPU Operator brings a driver to the node; `blocked` when it met one that is loaded already."""

    blocked: bool = False


@parses(
    r"(?P<blocked>Could not unload NVIDIA driver kernel modules, driver is in use)|nvidia-driver-(?:daemonset|ctr)\b|/run/nvidia/driver\b",
    "Could not unload NVIDIA driver", "nvidia-driver-daemonset", "nvidia-driver-ctr", "/run/nvidia/driver",
)  # fmt: skip
def operator_driver(found: re.Match[str], at: Place) -> OperatorDriver:
    """Recognise its containers, the folder that it mounts, and the installer inside."""
    return OperatorDriver(place=at, blocked=found["blocked"] is not None)
