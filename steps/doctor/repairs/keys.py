"""Repairs of modules that Secure Boot keeps out: a key is made where none is, the module signed with it, and the key enrolled."""

from __future__ import annotations

import re

import msgspec

from steps.catalog.repairs import SigningRow, signing
from steps.catalog.stack import Distribution, distribution_of
from steps.compat.case import Case
from steps.compat.driver_packages import kernel_flavour
from steps.compat.mok_plan import enrolment
from steps.compat.search import BARE
from steps.doctor.diagnosis import Step
from steps.doctor.events.signatures import KeyRefused
from steps.doctor.evidence import Evidence
from steps.doctor.repairs.base import Plan, made_of, manager_of, person, proof, reboot, repairs, run
from steps.doctor.repairs.builds import machine_of
from steps.doctor.repairs.modules import kernel_of, reinstalled
from steps.doctor.rules.base import Candidate
from steps.model.base import phrase

_FILE = re.compile(r"/[\w./+-]+\.(?:der|pub|crt|cer)")


@repairs("mok-not-enrolled")
def enroll(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the enrolment of the key that signs modules here; a person confirms it at the console.

    A module without a signature is signed before, and a key that is not there is made.
    """
    row = distribution_of(seen.system.id, seen.system.version)
    certificate = _certificate(seen, candidate, row)
    if certificate is None:
        return Plan(steps=(person("enroll", "mokutil", "--import", "KEY.der"), reboot()), verify=proof("mok"))
    absent = seen.host.exists(certificate) is False
    unsigned = absent or seen.has(KeyRefused, lambda event: event.unsigned)
    first = (*_signed_modules(seen, row), *_signed(seen, certificate, absent=absent)) if unsigned else ()
    return Plan(steps=(*first, _enrolled(seen, certificate), reboot()), verify=proof("mok"))


def _certificate(seen: Evidence, candidate: Candidate, row: Distribution | None) -> str | None:
    """Return the certificate that modules are signed with: the one that was asked about, else the distribution's; `None`: not known.

    One that was asked about and is not here is not taken where the distribution's is known.
    """
    asked = (word for told in candidate.facts for word in told.place.source.split() if told.place.source.startswith("mokutil"))
    named = next((word for word in asked if _FILE.fullmatch(word)), None)
    usual = row.key_certificate if row else None
    return usual if usual and (named is None or seen.host.exists(named) is False) else named


def _signed_modules(seen: Evidence, row: Distribution | None) -> tuple[Step, ...]:
    """Return the modules of the installed branch that the distribution has signed: a person takes them in place of all the rest."""
    kernel = kernel_of(seen)
    branch = next((found[1] for one in seen.packages.driver() if (found := re.search(r"-(\d{3}(?:-server)?(?:-open)?)$", one.name))), None)
    if manager_of(seen) != "apt" or row is None or row.signed_package is None or branch not in row.archive or kernel is None:
        return ()
    name = row.signed_package.replace("{variant}", branch).replace("{flavour}", kernel_flavour(Case(machine_of(seen), BARE)))
    return (person("signed-modules", "apt-get", "install", name, package=name),)


def _signed(seen: Evidence, certificate: str, *, absent: bool) -> tuple[Step, ...]:
    """Return what signs the driver's module: its key is made where it is not here, and the module built anew by its packages."""
    row: SigningRow | None = next((one for one in signing() if one.certificate == certificate), None)
    make: tuple[Step, ...] = ()
    if absent and row is not None and row.make:
        make = (run("make-key", *row.make, stays=phrase("repair.undo.made-key", path=certificate), path=certificate),)
    elif absent and row is None:
        make = (person("make-key", path=certificate),)
    if row is not None and row.build and seen.packages.named(r"akmod-nvidia.*"):
        kernel = kernel_of(seen)
        argv = (*row.build, *(("--kernels", kernel) if kernel else ()))
        return (*make, run("build-akmod", *argv, quiet=720, kernel=kernel or "?"))
    return (*make, *reinstalled(seen, "module"))


def _enrolled(seen: Evidence, certificate: str) -> Step:
    """Return the enrolment, as a plan of the wizard has it; where it is not known what waits for the next boot, the request stays."""
    waiting = seen.host.run(("mokutil", "--list-new"))
    told = f"{waiting.stdout}{waiting.stderr}"
    free = "is empty" in told or (waiting.status == 0 and not told.strip())
    step = made_of("enroll", (enrolment(certificate, () if free else None, phrase("repair.step.enroll")),))
    return msgspec.structs.replace(step, command=("mokutil", "--import", certificate), live=True)
