"""Not one valid combination is called an error: every release of the tables with what its own makers say goes with it."""

from __future__ import annotations

import re

import msgspec
import pytest

from steps.catalog import frameworks as catalog
from steps.compat.case import Case
from steps.compat.groups import everything
from steps.compat.wheels import allowed, cuda_of, driver_floor, runs
from steps.model.hardware import Accelerator
from steps.model.machine import Machine
from steps.model.profile import Profile, answered
from steps.model.software import Os, Toolkit
from tests.test_compat_cases import CARDS, machine

NEW, GLIBC = "620.70.06", "2.39"
"""A driver and a C library that all wheels run on."""


def forbidden(here: Machine, wanted: dict[str, str], python: str | None) -> set[str]:
    """Return the codes of what forbids these frameworks."""
    patch = {f"frameworks.{name}": version for name, version in wanted.items()} | ({"environment.python": python} if python else {})
    return {finding.code for finding in everything(Case(here, answered(Profile(), patch))) if finding.severity == "error"}


def card_for(row: catalog.TorchVariant, arch: str) -> str | None:
    """Return a card that a build holds code for; `None` when nobody looked."""
    inside = row.arch_aarch64 if arch == "aarch64" else row.arch
    names = [name for name, (_, _, _, capability) in CARDS.items() if inside and runs(inside, row.ptx, capability)]
    return names[-1] if names else None


def machine_for(card: str, cuda: str | None, arch: str = "x86_64") -> Machine:
    """Return a machine with a card that runs a build, with a driver that bears both."""
    old = CARDS[card][2] in ("kepler", "maxwell", "pascal", "volta")
    driver = "470.256.02" if CARDS[card][2] == "kepler" else "580.95.05" if old else NEW
    assert cuda is None or (floor := driver_floor(cuda)) is None or driver >= floor
    return machine(card, arch=arch, driver=driver, glibc=GLIBC)


def torches() -> list[tuple[str, str, str, str, dict[str, str]]]:
    """Return every CUDA build that somebody looked into: release, variant, card, processor, and each of its pairs."""
    found = []
    for release in catalog.torch_releases():
        for row in release.variant:
            for arch in ("x86_64", "aarch64"):
                card = card_for(row, arch) if cuda_of(row.name) else None
                if card is None:
                    continue
                beside: list[dict[str, str]] = [{}]
                beside += [{"torchvision": one} for one in release.torchvision] + [{"torchaudio": one} for one in release.torchaudio]
                beside += [{"numpy": "1.26.4"}] if release.numpy else [{"numpy": "2.2.6"}]
                found += [(release.version, row.name, card, arch, one) for one in beside]
    return found


def test_no_build_of_pytorch_with_its_own_pins_is_called_an_error() -> None:
    wrong, count = [], 0
    for version, variant, card, arch, beside in torches():
        release = catalog.torch_release(version)
        assert release is not None
        here = machine_for(card, cuda_of(variant), arch)
        pythons = release.pythons_aarch64 if arch == "aarch64" and release.pythons_aarch64 is not None else release.pythons
        for python in pythons:
            count += 1
            if found := forbidden(here, {"torch": version, "variant": variant, **beside}, python):
                wrong.append((version, variant, card, arch, python, beside, found))

    assert wrong == []
    assert count > 1000


def test_the_default_wheel_of_every_release_runs_somewhere() -> None:
    wrong = []
    for release in catalog.torch_releases():
        row = catalog.variant_of(release, release.default_variant)
        card = card_for(row, "x86_64") if row else None
        if card and (
            found := forbidden(machine_for(card, cuda_of(release.default_variant)), {"torch": release.version}, release.pythons[-1])
        ):
            wrong.append((release.version, card, found))

    assert wrong == []


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
def test_no_build_for_the_processor_is_called_an_error(arch: str) -> None:
    here = Machine(os=Os(id="ubuntu", version="24.04", arch=arch, glibc=GLIBC, container="none"))
    wanted = [(row.version, python) for row in catalog.torch_releases() for python in row.pythons]
    arm = {row.version: row.pythons_aarch64 for row in catalog.torch_releases() if row.pythons_aarch64 is not None}
    if arch == "aarch64":
        wanted = [(version, python) for version, python in wanted if version not in arm or python in (arm[version] or ())]

    assert [one for one in wanted if forbidden(here, {"torch": one[0], "variant": "cpu"}, one[1]) - {"no-such-variant"}] == []


def test_no_build_for_rocm_is_called_an_error_on_a_card_it_is_made_for() -> None:
    wrong = []
    for release in catalog.torch_releases():
        for row in release.variant:
            wheel = next((one for one in catalog.rocm_wheels() if row.name == f"rocm{one.rocm}"), None)
            if wheel and wheel.gfx:
                card = Accelerator(address="0000:01:00.0", vendor="amd", pci_id="1002:74a1", gfx=wheel.gfx[0])
                here = Machine(os=Os(id="ubuntu", version="24.04", arch="x86_64", glibc=GLIBC, container="none"), accelerators=(card,))
                if found := forbidden(here, {"torch": release.version, "variant": row.name}, release.pythons[-1]):
                    wrong.append((release.version, row.name, found))

    assert wrong == []


def lowest(need: str) -> str | None:
    """Return a NumPy that meets a requirement: its lower bound."""
    found = re.search(r">=\s*([\d.]+)", need.partition(";")[0])
    return found[1] if found else None


def test_no_release_of_tensorflow_with_its_own_pins_is_called_an_error() -> None:
    wrong = []
    for row in catalog.tensorflow_releases():
        for arch in ("x86_64", "aarch64") if row.aarch64 else ("x86_64",):
            here = machine("gh200" if arch == "aarch64" else "t4", arch=arch, driver=NEW, glibc=GLIBC)
            for python in row.pythons:
                for beside in ({}, *({"numpy": one} for need in row.numpy if ";" not in need and (one := lowest(need)))):
                    if found := forbidden(here, {"tensorflow": row.version, **beside}, python):
                        wrong.append((row.version, arch, python, beside, found))

    assert wrong == []


def test_no_release_of_jax_with_its_own_plugins_is_called_an_error() -> None:
    machines = [machine(card, arch=arch, driver=NEW, glibc=GLIBC) for arch, card in (("x86_64", "t4"), ("aarch64", "gh200"))]
    wanted = [
        ({"jax": row.version, **({"variant": variant} if variant else {})}, python)
        for row in catalog.jax_releases()
        for variant in (None, "cpu", *(["cu126"] if row.cuda12 else []), *(["cu130"] if row.cuda13 else []))
        for python in row.pythons
    ]

    assert [one for here in machines for one in wanted if forbidden(here, *one)] == []


def test_no_other_package_with_the_pytorch_that_it_asks_for_is_called_an_error() -> None:
    """Where a package pins one PyTorch, that one is taken with its default build, and what else of it the package pins.

    What is compiled has a PyTorch and a toolkit of its CUDA.
    """
    wrong = []
    for row in catalog.others():
        wanted = {row.package: row.version}
        pins = dict(re.findall(r"^(torch|torchvision|torchaudio)==([\d.]+)$", "\n".join(row.requires), re.MULTILINE))
        if row.package not in ("torchvision", "torchaudio"):
            wanted |= pins
        elif any(need.startswith("torch") for need in row.requires):
            wanted |= {"torch": next(one.version for one in catalog.torch_releases() if row.version in (*one.torchvision, *one.torchaudio))}
        here = machine("a100", driver=NEW, glibc=GLIBC)
        if row.build is not None:
            newest = catalog.torch_releases()[0]
            wanted |= {"torch": newest.version, "variant": newest.default_variant or ""}
            kit = Toolkit(version=cuda_of(wanted["variant"]), path="/usr/local/cuda")
            here = msgspec.structs.replace(here, toolkits=(kit,))
        lines = row.pythons or (allowed(row.requires_python) if row.requires_python else ())
        torch = catalog.torch_release(wanted.get("torch", ""))
        python = next((one for one in reversed(lines) if torch is None or one in torch.pythons), None)
        if found := forbidden(here, wanted, python):
            wrong.append((row.package, row.version, wanted, python, found))

    assert wrong == []
