"""Programs from the package index as planned actions, each in an environment of its own."""

from __future__ import annotations

from steps.managers.fetching import fetching
from steps.managers.python import any_python
from steps.model.action import AnyAction, Command, FileIs, RemovePath, Run, Succeeds
from steps.model.base import Words, phrase
from steps.model.plan import Target
from steps.model.profile import Profile


def install(
    id: str, title: Words, name: str, requirement: str, *, profile: Profile, target: Target, why: Words = ""
) -> tuple[AnyAction, ...]:
    """Return what installs the program `name` for one person: with `uv tool`, or with venv and pip where there is no uv.

    Raises `PreflightError` when the target has neither uv nor a Python.
    """
    installer = target.installer
    fetch = fetching(profile, installer, ())
    if installer.uv is not None:
        listed = f"{installer.home}/.local/share/uv/tools/{name}"
        return (
            Run(
                id=id,
                title=title,
                why=why,
                lane="python",
                by="user",
                # Options that every uv knows for tools; find-links and indexes are spelt as for pip.
                argv=(installer.uv, "tool", "install", *fetch.options, requirement),
                env={**fetch.environment("uv"), "UV_TOOL_DIR": f"{installer.home}/.local/share/uv/tools"},
                done_when=(Succeeds(argv=(f"{listed}/bin/{name}", "--version")),),
                # A second one ends with an error.
                undo=(Command(argv=(installer.uv, "tool", "uninstall", name), there=(FileIs(path=listed),)),),
                download_bytes=3_000_000,
                seconds=5,
                optional=True,
            ),
        )
    place = f"{installer.home}/.local/share/bringup/tools/{name}"
    python = f"{place}/bin/python"
    pip = (python, "-I", "-m", "pip", "install", "--no-input", "--progress-bar", "off", *fetch.options, requirement)
    return (
        Run(
            id=f"{id}-folder",
            title=phrase("manager.action.tool-folder", name=name),
            lane="python",
            by="user",
            argv=(any_python(installer), "-I", "-m", "venv", place),
            done_when=(FileIs(path=python),),
            undo=(RemovePath(path=place),),
            seconds=4,
            optional=True,
        ),
        Run(
            id=id,
            title=title,
            why=why,
            lane="python",
            by="user",
            needs=(f"{id}-folder",),
            argv=pip,
            env=fetch.environment("pip"),
            done_when=(Succeeds(argv=(f"{place}/bin/{name}", "--version")),),
            download_bytes=3_000_000,
            seconds=8,
            optional=True,
        ),
    )
