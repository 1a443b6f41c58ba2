"""What lets containers have the GPUs: NVIDIA's runtime in Docker's configuration, and the description (CDI) that Docker and Podman read."""

from __future__ import annotations

from steps import resources
from steps.model.action import AnyAction, Command, RemovePath, Run, Service, Succeeds
from steps.model.base import phrase
from steps.model.machine import Machine
from steps.model.plan import Target

DOCKER_CONFIG = "/etc/docker/daemon.json"
CDI_SPEC = "/var/run/cdi/nvidia.yaml"
"""Where the toolkit's own unit keeps the description; a second one elsewhere would grow stale."""
_CDI_UNIT = "nvidia-cdi-refresh.path"
_RELOAD = ("systemctl", "reload", "docker.service")
"""Docker reads `runtimes` anew when it is told to: containers that run go on."""


def actions(machine: Machine, target: Target, *, docker: bool, driver_runs: bool) -> tuple[AnyAction, ...]:
    """Return what is to be done once the toolkit is installed; of a mounted system nothing runs, its next start does the rest."""
    if target.root != "/" or machine.os.init not in (None, "systemd"):
        return ()
    return (*((_runtime(), _reload()) if docker else ()), _refresh(), *((_describe(),) if driver_runs else ()))


def _runtime() -> Run:
    """Return the action that names NVIDIA's runtime in Docker's configuration."""
    return Run(
        id="monitoring.docker-runtime",
        title=phrase("monitoring.action.docker-runtime", path=DOCKER_CONFIG),
        why=phrase("monitoring.why.docker-runtime"),
        lane="packages",
        argv=("nvidia-ctk", "runtime", "configure", "--runtime=docker", f"--config={DOCKER_CONFIG}"),
        done_when=(Succeeds(argv=("grep", "-q", "nvidia-container-runtime", DOCKER_CONFIG)),),
        # A file that was not there is removed; in one that was, only what we put in is taken out.
        undo=(
            RemovePath(path=DOCKER_CONFIG),
            Command(argv=(*resources.module_command("steps.host.docker_runtime"), DOCKER_CONFIG), tolerant=True),
            Command(argv=_RELOAD, tolerant=True),
        ),
        seconds=2.0,
        optional=True,
    )


def _reload() -> Run:
    """Return the action that makes Docker read its configuration; what it takes back stands with the runtime."""
    return Run(
        id="monitoring.docker-reload",
        title=phrase("monitoring.action.docker-reload"),
        why=phrase("monitoring.why.docker-reload"),
        lane="packages",
        argv=_RELOAD,
        needs=("monitoring.docker-runtime",),
        seconds=2.0,
        optional=True,
    )


def _refresh() -> Service:
    """Return the action that keeps the description fresh when the driver changes."""
    return Service(
        id="monitoring.cdi-refresh",
        title=phrase("monitoring.action.service", unit=_CDI_UNIT),
        why=phrase("monitoring.why.cdi"),
        lane="packages",
        unit=_CDI_UNIT,
        seconds=1.0,
        optional=True,
    )


def _describe() -> Run:
    """Return the action that writes the description now, for a driver that runs now."""
    return Run(
        id="monitoring.cdi",
        title=phrase("monitoring.action.cdi", path=CDI_SPEC),
        why=phrase("monitoring.why.cdi"),
        lane="packages",
        argv=("nvidia-ctk", "cdi", "generate", f"--output={CDI_SPEC}"),
        done_when=(Succeeds(argv=("test", "-s", CDI_SPEC)),),
        undo=(RemovePath(path=CDI_SPEC),),
        seconds=3.0,
        optional=True,
    )
