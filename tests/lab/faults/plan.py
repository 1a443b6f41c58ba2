"""The plan of a fault run: files, lists, packages that replace and remove, a person's environment, a proof."""

from __future__ import annotations

from steps.managers import apt_repository
from steps.model.action import FileIs, RemovePath, Run, Write, installing
from steps.model.plan import Plan
from tests.engine_kit import plan_of

ENVIRONMENT = "/opt/lab/env"
_PART = f"echo part $i >{ENVIRONMENT}/lib/$i; echo part $i; sleep 0.05"
_MAKE = f"mkdir -p {ENVIRONMENT}/lib && for i in 1 2 3 4 5; do {_PART}; done && echo whole >{ENVIRONMENT}/done"
_PROOF = f'[ "$(cat /var/lib/lab/module)" = "module 2.0" ] && [ -e {ENVIRONMENT}/done ] && [ -z "$(dpkg --audit)" ] && echo proven'


def plan(root: str) -> Plan:
    """Return the plan for the system below `root`."""
    return plan_of(
        Write(id="file.replaced", title="t", lane="files", path="/etc/lab-settings.conf", text="setting = new\n", mode=0o600),
        Write(id="file.new", title="t", lane="files", path="/etc/lab-new/deep/new.conf", text="new\n"),
        apt_repository.refresh("packages.lists"),
        Write(
            id="packages.pin",
            title="t",
            lane="packages",
            path="/etc/apt/preferences.d/lab",
            text="Package: lab-none\nPin: version 1\nPin-Priority: 1\n",
        ),
        installing(
            "apt",
            "packages.driver",
            "t",
            ("lab-driver=2.0",),
            may_remove=("lab-rival",),
            done_when=(FileIs(path="/var/lib/lab/module", text="module 2.0\n"),),
        ),
        Run(
            id="python.env",
            title="t",
            lane="python",
            argv=("sh", "-ec", _MAKE),
            undo=(RemovePath(path="/opt/lab"),),
            done_when=(FileIs(path=f"{ENVIRONMENT}/done"),),
        ),
        installing("apt", "packages.extra", "t", ("lab-extra",)),
        Run(id="verify", title="t", lane="proof", argv=("sh", "-ec", _PROOF)),
        root=root,
    )
