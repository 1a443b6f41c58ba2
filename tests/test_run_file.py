"""Keeping what NVIDIA's installer wrote: its own list is for root alone, and so the run reads it, not the plan."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from steps.compat import run_file_plan
from steps.model.action import Command, Run, Write
from steps.model.software import RunFile


@pytest.mark.parametrize("has_list", [True, False])
def test_what_only_the_installer_s_list_names_is_kept_and_comes_back(tmp_path: Path, has_list: bool) -> None:
    uninstaller, smi, module = (tmp_path / name for name in ("nvidia-uninstall", "nvidia-smi", "nvidia.ko"))
    for file in (uninstaller, smi, module):
        file.write_text(file.name)
    if has_list:
        # A name, its checksum; a link and where it leads; and what was removed by hand since.
        lines = ("580.95.05", "NVIDIA Driver", f"0: {smi}", "4157", f"1: {tmp_path}/gone", "/", f"0: {module}", "99")
        (tmp_path / "log").write_text("\n".join((*lines, "")))
    there = RunFile(uninstaller=str(uninstaller), files=(str(module), str(uninstaller)))

    def here(argv: tuple[str, ...]) -> list[str]:
        kept = [word.replace("/var/lib/nvidia-installer", f"{tmp_path}/kept") for word in argv]
        return [word.replace("/var/lib/nvidia/log", f"{tmp_path}/log") for word in kept]

    for action in run_file_plan.keeping(there):
        if isinstance(action, Write):
            Path(*here((action.path,))).write_text(action.text or "")
        else:
            assert subprocess.run(here(action.argv), capture_output=True).returncode in (0, *action.passes)
    kept = {uninstaller, module, smi} if has_list else {uninstaller, module}
    listed = subprocess.run(("tar", "--absolute-names", "--list", "--file", tmp_path / "kept.disabled.tar"), capture_output=True, text=True)
    assert sorted(listed.stdout.split()) == sorted(map(str, kept))
    for file in kept:
        file.unlink()
    away = run_file_plan.removing(there)
    assert isinstance(away, Run)
    back = away.undo[0]
    assert isinstance(back, Command)
    subprocess.run(here(back.argv), check=True)
    assert {file.name: file.read_text() for file in kept} == {file.name: file.name for file in kept}
