"""Putting aside what apt will replace: a copy from its cache, a download, or the package built again from its installed files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from steps.managers.base import PARTIAL, Argv, Change, Keep, Kept, NewFile, Simulation, Snapshot, Step, Way

if TYPE_CHECKING:
    from steps.host.base import Host

_ONE_TRY = ("-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=20", "-o", "Acquire::https::Timeout=20")
_PROBE_SECONDS = 60.0
_INFO = "/var/lib/dpkg/info"
_CONTROL = ("preinst", "postinst", "prerm", "postrm", "config", "templates", "triggers", "shlibs", "symbols", "md5sums")
"""What of dpkg's own files of a package was in its control archive; the list of conffiles is in its status."""
_OF_THE_STATUS = re.compile(r"^(?:Status|Config-Version|Conffiles):[^\n]*\n(?: [^\n]*\n)*", re.MULTILINE)
_CONFFILE = re.compile(r"^ (?P<path>/\S.*?) [0-9a-f]{32}(?P<obsolete> obsolete)?$", re.MULTILINE)


def keeping(simulation: Simulation, host: Host, folder: str) -> tuple[Keep, ...]:
    """Return how each of `simulation.replaced` gets into `folder`, for those that are not there yet; the best way first."""
    changes = [change for change in simulation.replaced if change.before and not host.glob(_candidates(change, folder))]
    architectures = _architectures(changes, host)
    found: list[Keep] = []
    for change in changes:
        architecture = architectures.get(change.name)
        if architecture is not None:
            name = file_name(change.name, change.before or "", architecture)
            found.append(Keep(file=name, ways=tuple(_ways(change, architecture, name, host, f"{folder}/{PARTIAL}"))))
    return tuple(found)


def kept(simulation: Simulation, host: Host, folder: str) -> Kept:
    """Return what of `simulation.replaced` lies in `folder`, and what does not."""
    files: dict[str, str] = {}
    lost: list[str] = []
    for change in simulation.replaced:
        there = host.glob(_candidates(change, folder))
        if there:
            files[f"{change.name}={change.before}"] = there[0]
        else:
            lost.append(f"{change.name}={change.before}")
    return Kept(files=files, lost=tuple(lost))


def unpack_again(kept: Kept, now: Snapshot, host: Host) -> tuple[Argv, ...]:
    """Return what unpacks once more the kept packages of which files are gone though dpkg calls them there; empty when none is.

    A package that had taken a file over (Replaces) keeps it while the old one is unpacked beside it, and takes it along when it goes.
    """
    named = ((*key.partition("=")[::2], file) for key, file in kept.files.items())
    back = [(name, file) for name, version, file in named if name in now.packages and now.packages[name].version == version]
    lacking = [file for name, file in back if _lacks(name, host)]
    if not lacking:
        return ()
    settled = ("--force-confdef", "--force-confold")
    return (("dpkg", *settled, "--force-downgrade", "--unpack", *lacking), ("dpkg", *settled, "--configure", "-a"))


def _lacks(package: str, host: Host) -> bool:
    """Return whether a file of an installed package is gone; a configuration file may have been removed on purpose."""
    bare = package.partition(":")[0]
    # dpkg's own list no longer has a file that was left to another package; the package's checksums still do.
    sums = (host.read(path) for path in (f"{_INFO}/{package}.md5sums", *host.glob(f"{_INFO}/{bare}:*.md5sums")) if host.exists(path))
    named = (line.partition("  ")[2] for text in sums for line in (text or "").splitlines())
    diverted = _diversions(bare, host)
    paths = (diverted.get(path, path) for path in (f"/{name}" for name in named if name))
    return any(host.exists(at) is False and host.readlink(at) is None for at in paths if not at.startswith(("/etc/", "/usr/share/doc/")))


def file_name(name: str, version: str, architecture: str) -> str:
    """Return the name that apt gives a .deb in its cache: the colon of an epoch is written %3a."""
    return f"{name.partition(':')[0]}_{version.replace(':', '%3a')}_{architecture}.deb"


def _candidates(change: Change, folder: str) -> str:
    return f"{folder}/{file_name(change.name, change.before or '', '*')}"


def _architectures(changes: list[Change], host: Host) -> dict[str, str]:
    """Return the architecture of each installed package that is named."""
    if not changes:
        return {}
    names = tuple(change.name for change in changes)
    told = host.run(("dpkg-query", "-W", "-f", r"${binary:Package}\t${Package}\t${Architecture}\n", *names), timeout=_PROBE_SECONDS)
    found: dict[str, str] = {}
    for line in told.stdout.splitlines():
        full, name, architecture = line.split("\t")
        found |= {full: architecture, f"{name}:{architecture}": architecture}
        found.setdefault(name, architecture)
    return found


def _ways(change: Change, architecture: str, name: str, host: Host, partial: str) -> list[Way]:
    """Return the ways in which a package comes to lie in `partial`."""
    ways: list[Way] = []
    if cached := host.glob(f"/var/cache/apt/archives/{name}"):
        ways.append(Way(steps=(("cp", "--reflink=auto", "--", cached[0], partial),)))
    fetch: Argv = ("env", f"--chdir={partial}", "apt-get", "-q", *_ONE_TRY, "download", f"{change.name}={change.before}")
    ways.append(Way(steps=(fetch,), fetches=True))
    if built := _built_again(change.name, architecture, f"{partial}/{name}", host):
        ways.append(Way(steps=built))
    return ways


# --- built again ------------------------------------------------------------------------------------


def _built_again(package: str, architecture: str, file: str, host: Host) -> tuple[Step, ...]:
    """Return what builds a package from its files as they are; empty when dpkg's own record of it cannot be read.

    A configuration file goes in as it is now: what its package had there is known to nobody any more.
    """
    record = host.run(("dpkg-query", "-s", package), timeout=_PROBE_SECONDS)
    bare = package.partition(":")[0]
    base = next((f"{_INFO}/{at}" for at in (f"{bare}:{architecture}", bare) if host.exists(f"{_INFO}/{at}.list")), None)
    listed = None if base is None else host.read(f"{base}.list")
    if record.status != 0 or base is None or listed is None:
        return ()
    diverted = _diversions(bare, host)
    lies = {path: diverted.get(path, path) for path in listed.splitlines() if path not in ("", "/.")}
    there = {path: at for path, at in lies.items() if host.readlink(at) is not None or host.exists(at)}
    making = f"{file}.making"
    tree, archive = f"{making}/tree", f"{making}/files.tar"
    conffiles = [found["path"] for found in _CONFFILE.finditer(record.stdout) if not found["obsolete"] and found["path"] in there]
    files: list[Step] = [
        NewFile(path=f"{making}/files", data="".join(f".{at}\n" for at in there.values()).encode()),
        NewFile(path=f"{tree}/DEBIAN/control", data=_OF_THE_STATUS.sub("", record.stdout.strip() + "\n").encode()),
    ]
    if conffiles:
        files.append(NewFile(path=f"{tree}/DEBIAN/conffiles", data="".join(f"{path}\n" for path in conffiles).encode()))
    scripts = tuple(f"{base}.{part}" for part in _CONTROL if host.exists(f"{base}.{part}"))
    return (
        ("mkdir", "-p", "-m", "755", f"{tree}/DEBIAN"),
        *files,
        *(("cp", "--preserve=mode", "--", script, f"{tree}/DEBIAN/{script.rpartition('.')[2]}") for script in scripts),
        (
            "tar",
            "--create",
            "--file",
            archive,
            "--directory",
            "/",
            "--no-recursion",
            "--verbatim-files-from",
            "--files-from",
            f"{making}/files",
        ),
        ("tar", "--extract", "--file", archive, "--directory", tree, "--preserve-permissions", "--same-owner"),
        # Not beside the tree and the package, which are as large.
        ("rm", "-f", "--", archive),
        *_put_in_place(there, tree),
        # Its own little tools: no package of ours is needed, and none has to be fetched.
        ("dpkg-deb", "-Zgzip", "-z1", "--build", tree, file),
        ("rm", "-rf", "--", making),
    )


def _put_in_place(there: dict[str, str], tree: str) -> list[Step]:
    """Return what moves diverted files back to the names that their package has for them."""
    moved: list[Step] = []
    for path, at in there.items():
        if at != path:
            moved += [("mkdir", "-p", f"{tree}{path.rpartition('/')[0]}"), ("mv", "-T", "--", f"{tree}{at}", f"{tree}{path}")]
    return moved


def _diversions(package: str, host: Host) -> dict[str, str]:
    """Return where files of the package lie because another package diverts them."""
    lines = (host.read("/var/lib/dpkg/diversions") or "").splitlines()
    return {path: to for path, to, by in zip(lines[::3], lines[1::3], lines[2::3], strict=False) if by != package}
