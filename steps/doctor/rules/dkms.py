"""The module could not be built: no headers, no fitting source, no fitting compiler, a tree that DKMS cannot read."""

from __future__ import annotations

import re

from steps.doctor import numbers
from steps.doctor.events.dkms import (
    BuildFailed,
    BuildFor,
    BuildLog,
    CodeError,
    DkmsTreeBroken,
    HeadersMissing,
    KernelBuiltBy,
    MakeStopped,
    OptionRefused,
)
from steps.doctor.events.kernel import FirmwareOther
from steps.doctor.evidence import Evidence
from steps.doctor.facts.modules import Dkms
from steps.doctor.rules.base import CERTAIN, LIKELY, POSSIBLE, STRONG, Answer, found, out, rule
from steps.doctor.told import Told, fact

_OURS = ("nvidia", "amdgpu")


def _ours(module: str | None) -> bool:
    return module is not None and module.startswith(_OURS)


def entries(seen: Evidence) -> tuple[Dkms, ...]:
    """Return the lines of DKMS about drivers of GPUs."""
    return tuple(line for line in seen.modules.dkms or () if _ours(line.module))


def built(seen: Evidence, kernel: str | None) -> Dkms | None:
    """Return the line that says that the driver is built for a kernel (for any, where none is named), or `None`."""
    done = (line for line in entries(seen) if line.state in ("installed", "built"))
    return next((line for line in done if kernel is None or line.kernel == kernel), None)


@rule("kernel-headers-missing")
def headers_missing(seen: Evidence) -> Answer:
    """The build was skipped or broke off for want of headers of a kernel that is in use."""
    running = seen.system.kernel
    for missing in sorted(seen.all(HeadersMissing), key=lambda one: (not one.incomplete, one.kernel is None)):
        if missing.module is not None and not _ours(missing.module):
            continue
        if _gone(seen, missing) or built(seen, missing.kernel or (running.value if running else None)):
            continue
        kernel = missing.kernel or (running.value if running else "?")
        sure = CERTAIN if missing.incomplete or (running is not None and kernel == running.value) else STRONG
        if seen.driver_answers:
            sure = POSSIBLE
        return found(sure, missing, running, *_for_kernel(seen, kernel), kernel=kernel, variant="incomplete" if missing.incomplete else "")
    return _no_headers_package(seen)


def _gone(seen: Evidence, missing: HeadersMissing) -> bool:
    """Return whether it is about a kernel that is not the running one, and nothing says that it is installed."""
    running = seen.system.kernel
    if running is None or missing.kernel in (None, running.value):
        return False
    images = seen.packages.named(rf"(linux-image|kernel|kernel-core)-?{re.escape(missing.kernel or '')}.*")
    failed = any(event.kernel == running.value for event in seen.all(BuildFailed))
    return not images or failed


def _for_kernel(seen: Evidence, kernel: str) -> tuple[Told, ...]:
    return tuple(event for event in seen.all(BuildFailed) if event.kernel == kernel)[:1]


def _no_headers_package(seen: Evidence) -> Answer:
    """Decide by the package database: an entry of DKMS is not built, and no headers of the running kernel are installed."""
    running = seen.system.kernel
    waiting = [line for line in entries(seen) if line.state == "added"]
    if running is None or built(seen, running.value) or seen.driver_answers or seen.all(BuildFailed):
        return None
    if not waiting:
        others = _of_newer_kernel(seen, running.value)
        return found(LIKELY - 0.1, others, running, kernel=running.value) if others is not None else None
    at = f"/lib/modules/{running.value}/build"
    absent = seen.host.exists(at) is False
    if seen.packages.whole and seen.packages.named(rf"linux-headers-{re.escape(running.value)}"):
        return out(*seen.packages.named(rf"linux-headers-{re.escape(running.value)}"))
    if absent or seen.packages.whole:
        return found(STRONG if absent else LIKELY, waiting[0], running, kernel=running.value)
    others = _other_headers(seen, running.value)
    return found(LIKELY - 0.1, waiting[0], running, others, kernel=running.value) if others is not None else None


def _of_newer_kernel(seen: Evidence, kernel: str) -> Told | None:
    """Return headers of other kernels, where a list has the running kernel without its own, and no module of the driver is for it."""
    here = seen.packages.named(rf"kernel(?:-core)?|linux-image-(?:unsigned-)?{re.escape(kernel)}")
    itself = any(kernel in row.name or kernel.startswith(row.version) for row in here)
    if not itself or seen.driver_answers is not False or seen.smi.installed is False:
        return None
    ready = kernel in seen.modules.kernels() or seen.packages.named(r"linux-modules-nvidia-.*|kmod-nvidia-\S*\d+\.\d+\.\d+-.*")
    return None if ready else _other_headers(seen, kernel)


def _other_headers(seen: Evidence, kernel: str) -> Told | None:
    """Return headers that are installed for other kernels where a list of them has none of this kernel's, or `None`."""
    rows = seen.packages.named(r"linux-headers-\d\S*|kernel-devel(?:-matched)?")
    if rows:
        mine = any(kernel in row.name or (row.name.startswith("kernel") and kernel.startswith(row.version)) for row in rows)
        return None if mine else rows[0]
    for argv in seen.host.forms(lambda argv: argv[0] == "ls" and "/usr/src" in " ".join(argv)):
        text = seen.host.run(argv).stdout
        other = re.search(r"\b(?:linux-headers|kernels?)[-/]?\d\S*", text)
        return fact(other[0], " ".join(argv)) if other is not None and kernel not in text else None
    return None


@rule("driver-does-not-build-on-kernel")
def does_not_build(seen: Evidence) -> Answer:
    """A build of the driver failed, with headers and with options that the compiler knows."""
    code = seen.first(CodeError)
    failure = _failure(seen)
    stopped = seen.first(MakeStopped) if code is None else None
    explained = bool(seen.all(OptionRefused)) or bool(seen.all(HeadersMissing))
    if code is None and failure is None and (stopped is None or explained):
        return None
    running = seen.system.kernel
    head = seen.first(BuildFor, lambda one: code is not None and one.place.source == code.place.source)
    kernel = (failure.kernel if failure else None) or (head.kernel if head else None) or (running.value if running else None)
    log = next(iter(sorted(seen.all(BuildLog), key=lambda one: one.place.order)), None)
    if failure and kernel and built(seen, kernel) and seen.driver_answers is not False:
        return out(built(seen, kernel))
    if seen.driver_answers and (running is None or kernel == running.value):
        return None
    version = (failure.version if failure else None) or (log.version if log else None) or (stopped.version if stopped else None)
    module = (failure.module if failure else None) or (log.module if log else None) or "nvidia"
    other = next((line for line in seen.modules.dkms or () if not _ours(line.module) and line.kernel == kernel), None)
    sure = CERTAIN if code else STRONG if failure else LIKELY
    return found(
        sure, failure, code, stopped, log, other, *entries(seen)[:1], running, module=module, version=version or "", kernel=kernel or "?"
    )


def _failure(seen: Evidence) -> BuildFailed | None:
    """Return the failed build that is the driver's: it is named, or everything near it is."""
    failures = seen.all(BuildFailed)
    named = next((event for event in failures if _ours(event.module)), None)
    mine = bool(seen.all(BuildLog)) or bool(entries(seen)) or bool(seen.packages.named(r"(nvidia|amdgpu)\S*dkms\S*", installed=False))
    general = next((event for event in failures if event.module is None and event.kernel), next(iter(failures), None))
    others = any(event.module and not _ours(event.module) for event in failures)
    if named is not None:
        return named if named.kernel or general is None else general
    return general if mine and not (others and not seen.all(BuildLog)) else None


@rule("dkms-compiler-too-old")
def compiler_too_old(seen: Evidence) -> Answer:
    """The compiler does not know an option that the kernel's build gives it."""
    refused = next((event for event in seen.all(OptionRefused) if _in_build(seen, event)), None)
    if refused is None:
        return None
    failure = next(iter(seen.all(BuildFailed)), None)
    log = next(iter(seen.all(BuildLog)), None)
    head, builder = next(iter(seen.all(BuildFor)), None), next(iter(seen.all(KernelBuiltBy)), None)
    kernel = (failure.kernel if failure else None) or (head.kernel if head else None)
    params = {"kernel": kernel} if kernel else {}
    return found(CERTAIN if failure or log else STRONG, refused, builder, failure, log, option=refused.option, **params)


def _in_build(seen: Evidence, refused: OptionRefused) -> bool:
    """Return whether an option was refused while a kernel module was built, not by nvcc or in a Python build."""
    source, text = refused.place.source, refused.place.text
    if re.search(r"nvcc|clang: error: unsupported|ptxas", text):
        return False
    return (
        "make.log" in source or "dkms" in source or "nvidia-installer" in source or bool(seen.all(BuildFailed)) or bool(seen.all(BuildLog))
    )


@rule("dkms-tree-stale-entry")
def stale_entry(seen: Evidence) -> Answer:
    """An entry of DKMS has lost its sources: the driver's own, or another one at which DKMS stops before it comes to the driver."""
    all_said = [event for event in seen.all(DkmsTreeBroken) if event.module is None or _ours(event.module)] or _strangers(seen)
    said = next((event for event in all_said if _whole(seen, event) is None), None)
    broken = next((line for line in entries(seen) if line.state == "broken"), None)
    if said is None and broken is None:
        return out(_whole(seen, all_said[0])) if all_said else None
    module = (said.module if said else None) or (broken.module if broken else None) or "?"
    version = (said.version if said else None) or (broken.version if broken else None) or "?"
    sure = LIKELY + 0.1 if said and said.module and not _ours(said.module) else CERTAIN if said else STRONG
    return found(sure, said, broken, *seen.packages.driver("module")[:1], module=module, version=version)


def _strangers(seen: Evidence) -> list[DkmsTreeBroken]:
    """Return the broken entries of other modules, where nothing shows that the driver was built in spite of them."""
    running = seen.system.kernel
    got_on = built(seen, running.value if running else None) is not None or bool(seen.all(BuildFailed))
    if got_on or seen.driver_answers:
        return []
    # A machine may have such an entry for years, and no driver that waits behind it; whoever hands over a log of it asks about it.
    ours = bool(entries(seen) or seen.packages.driver("module"))
    return [event for event in seen.all(DkmsTreeBroken) if ours or not event.place.source.startswith(("/", "dkms "))]


def _whole(seen: Evidence, said: DkmsTreeBroken) -> Told | None:
    """Return what shows that an entry has its sources by now: the file itself, or DKMS's own word where the file was not looked at."""
    conf = f"/var/lib/dkms/{said.module}/{said.version}/source/dkms.conf"
    there = seen.host.exists(conf) if said.module and said.version else None
    if there:
        return fact(said.version or "?", conf, conf)
    healthy = (line for line in entries(seen) if (line.module, line.version) == (said.module, said.version))
    line = next((line for line in healthy if line.state in ("added", "built", "installed")), None)
    return line if there is None else None


@rule("driver-package-contains-wrong-version")
def wrong_contents(seen: Evidence) -> Answer:
    """The package of the module says one version, the module made from it another, and firmware or libraries agree with the package."""
    packages = [row for row in seen.packages.driver("module") if row.driver]
    disk = next(iter(seen.versions.on_disk), None)
    firmware = seen.first(FirmwareOther)
    module = disk.value if disk else firmware.expected if firmware else None
    package = next((row for row in packages if module and not numbers.same(row.driver or "", module)), None)
    if package is None or module is None:
        return None
    rest = [
        row for row in seen.packages.driver("library", "tool", "firmware") if row.driver and numbers.same(row.driver, package.driver or "")
    ]
    fresh = next((line for line in entries(seen) if line.state == "installed" and numbers.same(line.version, package.driver or "")), None)
    if firmware is not None and numbers.same(firmware.got, package.driver or "") and numbers.same(firmware.expected, module):
        return found(CERTAIN, package, disk, firmware, fresh, package=package.driver or "?", module=module)
    # DKMS says that it built the package's version, and still the module is another one.
    if fresh is not None and fresh.kernel == (seen.system.kernel.value if seen.system.kernel else fresh.kernel):
        return found(LIKELY + 0.1, package, disk, fresh, *rest[:1], package=package.driver or "?", module=module)
    return None
