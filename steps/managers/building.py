"""What is compiled inside an environment, against the packages that are there."""

from __future__ import annotations

from steps.managers.fetching import Fetching
from steps.managers.makers import Place, compiling, removing
from steps.managers.python_scripts import HAS_ALL
from steps.model.action import Command, Run, Succeeds
from steps.model.base import Record, phrase

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SECONDS = 1800.0
"""What compiling takes on a machine of a few cores."""


class Building(Record):
    """Packages to compile, and what that takes."""

    requirements: tuple[str, ...]
    tools: tuple[str, ...] = ()
    """What the environment must hold before."""
    cuda_home: str | None = None
    """The toolkit whose nvcc compiles."""
    jobs: int | None = None
    """How many files at once; `None` leaves it to the package."""
    needs: tuple[str, ...] = ()
    """Actions outside the environment that come first."""


def build(where: Place, uv: str, fetch: Fetching, wanted: Building) -> Run:
    """Return what compiles the packages: without an environment of the build's own, which would not hold PyTorch."""
    # ninja lies in the environment, nvcc in the toolkit; neither is on the path of a run.
    folders = (f"{where.prefix}/bin", *((f"{wanted.cuda_home}/bin",) if wanted.cuda_home else ()), _PATH)
    env = {**fetch.environment(where.filler), "PATH": ":".join(folders)}
    env |= {"CUDA_HOME": wanted.cuda_home} if wanted.cuda_home else {}
    env |= {"MAX_JOBS": str(wanted.jobs)} if wanted.jobs else {}
    names = tuple(one.partition("=")[0] for one in wanted.requirements)
    return Run(
        id="environment.build",
        title=phrase("manager.action.build", packages=", ".join(one.replace("==", " ") for one in wanted.requirements)),
        why=phrase("manager.why.build"),
        lane="python",
        by="user",
        needs=("environment.install", *wanted.needs),
        argv=(*compiling(where, uv, fetch), *wanted.requirements),
        env=env,
        undo=(Command(argv=(*removing(where, uv), *names), tolerant=True),),
        done_when=(Succeeds(argv=(where.python, "-I", "-c", HAS_ALL, *wanted.requirements)),),
        seconds=SECONDS,
        quiet_seconds=SECONDS,
        quiet_why=phrase("manager.quiet.build"),
    )
