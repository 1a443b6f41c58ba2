"""The keys that a machine signs its own modules with."""

from __future__ import annotations

from steps.catalog.stack import distribution_of
from steps.detect.probes import Probes
from steps.doctor.facts.system import System


def questions(host: Probes, system: System) -> tuple[tuple[str, ...], ...]:
    """Return the questions whether the firmware knows the keys that are here; none where no key lies where the tables say."""
    row = distribution_of(system.id, system.version)
    files = dict.fromkeys((*((row.key_certificate,) if row and row.key_certificate else ()), "/var/lib/dkms/mok.pub"))
    return tuple(("mokutil", "--test-key", file) for file in files if host.exists(file))
