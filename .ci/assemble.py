"""Builds bringup.pyz: the wheel of a checkout, its pure dependencies, and the compiled ones for every Python and machine we name.

`python assemble.py CHECKOUT OUT`, with a Python that has pip; pip's own configuration says where packages come from.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
from email.parser import BytesParser
from pathlib import Path

from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.utils import canonicalize_name

PYTHONS = ("310", "311", "312", "313", "314")
MACHINES = ("x86_64", "aarch64")
HERE = Path(__file__).resolve().parent
EPOCH = (2020, 1, 1, 0, 0, 0)
"""Every entry's date, so that the same wheels give the same archive."""


def pip(*arguments: str, silent: bool = False) -> bool:
    """Run pip and return whether it worked; it prints its own errors."""
    argv = [sys.executable, "-I", "-m", "pip", "-qq", "--disable-pip-version-check", *arguments]
    return subprocess.run(argv, check=False, stderr=subprocess.DEVNULL if silent else None).returncode == 0


def need(worked: bool, what: str) -> None:
    """End the program when something could not be had."""
    if not worked:
        sys.exit(f"assemble: {what} could not be had; pip's lines above say why")


def platforms(machine: str) -> list[str]:
    """Return pip's options for glibc wheels of `machine`, old and new names."""
    return [option for name in ("manylinux2014", "manylinux_2_17", "manylinux_2_28") for option in ("--platform", f"{name}_{machine}")]


def download(target: Path, python: str, machine: str, *what: str) -> None:
    """Download wheels for one interpreter and machine."""
    abis = [option for abi in (f"cp{python}", "abi3", "none") for option in ("--abi", abi)]
    version = f"{python[0]}.{python[1:]}"
    common = ["--only-binary=:all:", "--implementation", "cp", "--python-version", version, *abis, *platforms(machine), "--platform", "any"]
    need(pip("download", "-d", str(target), *common, *what), f"wheels of {', '.join(what)} for Python {version} on {machine}")


def missing(wheels: list[Path]) -> list[str]:
    """Return the requirements that some Python of ours has and that no wheel meets.

    pip judges markers by the Python it runs on, so what only an older one needs (tomli) is not downloaded by itself.
    """
    here = {canonicalize_name(wheel.name.split("-")[0]) for wheel in wheels}
    found: set[str] = set()
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as packed:
            (name,) = (name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
            metadata = BytesParser().parsebytes(packed.read(name))
        for text in metadata.get_all("Requires-Dist", []):
            requirement = Requirement(text)
            minors = [f"3.{python[1:]}" for python in PYTHONS]
            environments = [{"python_version": minor, "python_full_version": f"{minor}.0", "extra": ""} for minor in minors]
            if any(requirement.marker is None or requirement.marker.evaluate(environment) for environment in environments):
                requirement.marker = None
                if canonicalize_name(requirement.name) not in here:
                    found.add(str(requirement))
    return sorted(found)


def pure_instead(wheel: Path, target: Path) -> bool:
    """Whether the same release also exists as a wheel without compiled parts (it is then in `target`)."""
    name, version, *_ = wheel.name.split("-")
    kind = ("--only-binary=:all:", "--implementation", "py", "--abi", "none", "--platform", "any", "--python-version", "3.10")
    return pip("download", "-d", str(target), "--no-deps", *kind, f"{name}=={version}", silent=True)


def gather(checkout: Path, work: Path) -> dict[str, list[Path]]:
    """Return the wheels of each part of the archive: `common`, and one part for each Python and machine."""
    built, all_wheels, pure = (work / name for name in ("built", "all", "pure"))
    need(pip("wheel", "--no-deps", "-w", str(built), str(checkout)), "our own wheel")
    (own,) = built.glob("*.whl")
    # The oldest Python needs the most dependencies; what serves it serves the others.
    wanted = [str(own)]
    while wanted:
        download(all_wheels, PYTHONS[0], MACHINES[0], *wanted)
        wanted = missing(sorted(all_wheels.glob("*.whl")))
    parts: dict[str, list[Path]] = {"common": []}
    compiled: list[str] = []
    for wheel in sorted(all_wheels.glob("*.whl")):
        if wheel.name.endswith("-none-any.whl"):
            parts["common"].append(wheel)
        elif not pure_instead(wheel, pure):
            name, version, *_ = wheel.name.split("-")
            compiled.append(f"{name}=={version}")
    parts["common"] += sorted(pure.glob("*.whl"))
    for machine in MACHINES:
        for python in PYTHONS:
            tag = f"cp{python}-{machine}"
            download(work / tag, python, machine, "--no-deps", *compiled)
            parts[tag] = sorted((work / tag).glob("*.whl"))
    return parts


def contents(parts: dict[str, list[Path]]) -> dict[str, bytes]:
    """Return what the archive holds, by name, but for its first program."""
    found: dict[str, bytes] = {}
    for part, wheels in parts.items():
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as packed:
                for name in packed.namelist():
                    if not name.endswith("/") and ".data/scripts/" not in name:
                        found[f"{part}/{name}"] = packed.read(name)
    found["common/__main__.py"] = (HERE / "tree_main.py").read_bytes()
    return found


def write(out: Path, files: dict[str, bytes], tags: list[str]) -> None:
    """Write the archive, in one step at its end."""
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(name.encode() + b"\0" + files[name])
    first = (HERE / "archive_main.py").read_text(encoding="utf-8")
    first = first.replace("@BUILD@", digest.hexdigest()[:16]).replace("@TAGS@", " ".join(tags))
    making = out.with_name(f".{out.name}.{os.getpid()}")
    with making.open("wb") as sink:
        sink.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
            for name, data in sorted({**files, "__main__.py": first.encode()}.items()):
                packed.writestr(zipfile.ZipInfo(name, EPOCH), data, zipfile.ZIP_DEFLATED)
    making.chmod(making.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    making.replace(out)


def main() -> None:
    """Build the archive and say how large it is."""
    checkout, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    work = Path(tempfile.mkdtemp(prefix="bringup-pyz-"))
    try:
        parts = gather(checkout, work)
        write(out, contents(parts), sorted(set(parts) - {"common"}))
    finally:
        shutil.rmtree(work)
    print(f"{out}: {out.stat().st_size / 1e6:.1f} MB, {len(parts['common'])} common wheels, {len(parts) - 1} compiled parts")


if __name__ == "__main__":
    main()
