"""What the loaded module of the driver was told, as the kernel shows it."""

from __future__ import annotations

import re

from steps.detect.probes import Probes

PARAMS = "/proc/driver/nvidia/params"


def counters_for_root(host: Probes) -> bool | None:
    """Return whether only root may read the performance counters; `None` where no module shows it."""
    found = re.search(r"^RmProfilingAdminOnly: (\d+)$", host.read(PARAMS) or "", re.MULTILINE)
    return None if found is None else found[1] != "0"
