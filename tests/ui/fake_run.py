"""A run that only a test moves on: the interface of the engine's handle over a folder that grows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from steps.engine.client import Spool
from steps.engine.estimate import left
from steps.engine.progress import Work
from steps.errors import InputError
from steps.model.action import AnyAction, Manual, Packages, Reboot, Run, Write
from steps.model.base import Words, phrase
from steps.model.plan import Plan, Target
from steps.model.profile import DriverAnswers, EnvironmentAnswers, Profile, ToolkitAnswers
from steps.model.run import ActionState, ActionStatus, Prompt, RunState, RunStatus
from steps.model.verdict import Rung

Sudo = Callable[[tuple[str, ...]], int]
START = 1_764_511_320.0
"""When the run of the pictures started, seconds since the epoch."""


class FakeRun:
    """A handle whose state is what the test last said, and which remembers what it was told."""

    def __init__(self, folder: Path, plan: Plan | None = None) -> None:
        self.id = "1130-a"
        self.folder = str(folder)
        self.plan = plan or nine_steps()
        self.told: list[tuple[object, ...]] = []
        self.refuses: str | None = None
        self.has_runner = True
        self.vanished = False
        self.rungs: tuple[Rung, ...] | None = None
        self.goes: tuple[str, ...] = ()
        self.back = 0
        self.works: dict[str, Work] = {}
        self._state = RunState(
            status="running", started=START, actions={action.id: ActionState(id=action.id) for action in self.plan.actions}
        )
        (folder / "output").mkdir(parents=True, exist_ok=True)

    # --- what the test moves --------------------------------------------------------------------

    def now_is(self, status: RunStatus, *, code: int | None = None, ended: float | None = None, prompt: Prompt | None = None) -> None:
        self._state = msgspec.structs.replace(self._state, status=status, exit=code, ended=ended, prompt=prompt)

    def action(
        self,
        id: str,
        status: ActionStatus,
        *,
        started: float | None = None,
        seconds: float | None = None,
        code: int | None = None,
        error: Words | None = None,
    ) -> None:
        begun = None if started is None else START + started
        ended = None if begun is None or seconds is None else begun + seconds
        one = ActionState(id=id, status=status, started=begun, ended=ended, exit=code, error=error)
        self._state = msgspec.structs.replace(self._state, actions={**self._state.actions, id: one})

    def print(self, id: str, output: bytes) -> None:
        with (Path(self.folder) / "output" / f"{id}.log").open("ab") as file:
            file.write(output)

    # --- the handle -----------------------------------------------------------------------------

    def state(self) -> RunState:
        if self.vanished:
            raise InputError("run-vanished", run=self.id, folder=self.folder)
        return self._state

    def alive(self) -> bool:
        return self.has_runner

    def spool(self, action_id: str) -> Spool:
        return Spool(Path(self.folder) / "output" / f"{action_id}.log")

    def work(self, action_id: str) -> Work | None:
        return self.works.get(action_id)

    def left(self, now: float) -> float | None:
        return left(self.plan, self._state, now, self.works)

    def verdict(self) -> tuple[Rung, ...] | None:
        return self.rungs

    def _hear(self, *words: object) -> None:
        if self.refuses:
            raise InputError(self.refuses, run=self.id)
        self.told.append(words)

    def answer(self, seq: int, text: str) -> None:
        self._hear("answer", seq, text)

    def keys(self, seq: int, data: bytes) -> None:
        self._hear("keys", seq, data)

    def cancel(self) -> None:
        self._hear("cancel")

    def pause(self) -> None:
        self._hear("pause")

    def proceed(self) -> None:
        self._hear("proceed")

    def retry(self, action: str, *, sudo: Sudo | None = None) -> None:
        self._hear("retry", action)

    def skip(self, action: str, *, sudo: Sudo | None = None) -> None:
        self._hear("skip", action)

    def resume(self, *, sudo: Sudo | None = None) -> None:
        self._hear("resume")

    def undo(self, *, sudo: Sudo | None = None) -> None:
        self._hear("undo")

    def goes_back(self) -> int:
        return self.back

    def goes_with_undo(self) -> tuple[str, ...]:
        return self.goes


def nine_steps() -> Plan:
    """Return the plan of the worked screens."""

    def packages(id: str, title: str, seconds: float, quiet: float | None = None) -> Packages:
        why = phrase("driver.quiet.dkms") if quiet else ""
        return Packages(
            id=id, title=title, lane="packages", manager="apt", install=("x",), seconds=seconds, quiet_seconds=quiet, quiet_why=why
        )

    actions: tuple[AnyAction, ...] = (
        Run(id="system.return", title="Return point saved", argv=("true",), seconds=20),
        packages("driver.headers", "Kernel headers 6.5.0-41", 40),
        packages("driver.install", "Driver 580 open, module by DKMS", 480, 720),
        packages("toolkit.cuda", "CUDA toolkit 13.0", 180),
        packages("toolkit.libraries", "cuDNN 9.28, NCCL 2.28.9", 60),
        Run(id="frameworks.environment", title="~/envs/dl: PyTorch 2.15.0", by="user", lane="python", argv=("true",), seconds=140),
        Write(id="nccl.conf", title="/etc/nccl.conf", lane="files", path="/etc/nccl.conf", text="NCCL_DEBUG=WARN\n"),
        packages("monitoring.install", "Monitoring", 15),
        Run(id="verify", title="Next-boot proof, verify", lane="proof", argv=("true",), outside=True, seconds=60),
    )
    return planned(actions)


def planned(actions: tuple[AnyAction, ...]) -> Plan:
    """Return a plan of these actions for the machine of the worked screens."""
    profile = Profile(
        driver=DriverAnswers(branch="580", flavor="open"),
        toolkit=ToolkitAnswers(cuda="13.0"),
        environment=EnvironmentAnswers(manager="uv", path="/home/ana/envs/dl"),
        frameworks={"torch": "2.15.0", "variant": "cu130"},
    )
    target = Target(rehearsal=True, name="gpu01", summary="4× RTX 4090 · Ubuntu 22.04.4", kernel="6.5.0-41-generic")
    return Plan(made=START, target=target, profile=profile, actions=actions)


def real(run: FakeRun) -> FakeRun:
    """Return the run as one that changes the machine, and so can be taken back; nobody is asked for a password for it."""
    actions = tuple(msgspec.structs.replace(action, by="user") for action in run.plan.actions)
    target = msgspec.structs.replace(run.plan.target, rehearsal=False)
    run.plan = msgspec.structs.replace(run.plan, target=target, actions=actions)
    return run


def halfway(folder: Path) -> FakeRun:
    """Return the run of picture 09: the driver's module compiles, beside it the Python environment is made."""
    run = FakeRun(folder)
    run.action("system.return", "done", started=0, seconds=21)
    run.action("driver.headers", "done", started=22, seconds=38)
    run.action("driver.install", "running", started=163)
    run.action("frameworks.environment", "running", started=315)
    run.print("driver.install", b"".join(f"Unpacking package-{number} ...\n".encode() for number in range(2107)))
    run.print(
        "driver.install",
        b"Setting up nvidia-kernel-common-580 (580.178.04-0ubuntu0.22.04.1) ...\n"
        b"Setting up nvidia-dkms-580-open (580.178.04-0ubuntu0.22.04.1) ...\n"
        b"update-initramfs: deferring update (trigger activated)\n"
        b"Loading new nvidia-580.178.04 DKMS files...\n"
        b"Building for 6.5.0-41-generic\n"
        b"Building for architecture x86_64\n"
        b"Building initial module for 6.5.0-41-generic\n",
    )
    return run


def failed(folder: Path) -> FakeRun:
    """Return the run of picture 13: the module did not build."""
    run = halfway(folder)
    error = phrase("run.failed-exit", title="Driver 580 open, module by DKMS", exit=10)
    run.action("driver.install", "failed", started=163, seconds=151, code=10, error=error)
    run.action("frameworks.environment", "done", started=315, seconds=140)
    run.print(
        "driver.install", b"cc: error: unrecognized command-line option '-ftrivial-auto-var-init=zero'\nmake: *** [Makefile:2034] stop\n"
    )
    run.now_is("failed", code=1, ended=START + 314)
    run.has_runner = False
    return run


def asking(folder: Path, kind: str = "choice", id: str = "dpkg-conffile") -> FakeRun:
    """Return the run of picture 10: dpkg asks about a settings file."""
    run = halfway(folder)
    run.action("driver.install", "done", started=163, seconds=588)
    run.action("toolkit.cuda", "done", started=755, seconds=185)
    run.action("toolkit.libraries", "asks", started=941)
    run.action("frameworks.environment", "done", started=315, seconds=140)
    excerpt = (
        "Configuration file '/etc/nccl.conf'\n ==> Modified (by you or by a script) since installation.\n"
        " ==> Package distributor has shipped an updated version.\n*** nccl.conf (Y/I/N/O/D/Z) [default=N] ?"
    )
    prompt = msgspec.convert({"seq": 41, "action": "toolkit.libraries", "id": id, "kind": kind, "excerpt": excerpt}, Prompt)
    run.now_is("asks", prompt=prompt)
    return run


def rebooting(folder: Path) -> FakeRun:
    """Return the run of picture 14: everything is installed, the machine is to be started again."""
    plan = nine_steps()
    reboot = Reboot(id="driver.reboot", title="Reboot", reason="The new module is loaded at the next boot.")
    run = FakeRun(folder, planned((*plan.actions[:8], reboot, plan.actions[8])))
    for at, action in enumerate(plan.actions[:8]):
        run.action(action.id, "done", started=at * 60, seconds=50)
    run.action("driver.reboot", "running", started=500)
    run.now_is("reboot", code=10, ended=START + 501)
    run.has_runner = False
    return run


def by_hand(folder: Path) -> FakeRun:
    """Return a run that waits for something only a person can do."""
    manual = Manual(id="firmware.sriov", title="SR-IOV on in the BIOS", text="Turn on SR-IOV in the BIOS.")
    run = FakeRun(folder, planned((manual,)))
    run.action("firmware.sriov", "asks", started=1)
    run.now_is("asks", prompt=Prompt(seq=7, action="firmware.sriov", id="manual", kind="choice"))
    return run
