"""A script that sets a variable is still one that a shell can read when it sets it no more."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from steps.doctor.repairs.paths import without_setting

VARIABLE = "LD_LIBRARY_PATH"
LATER = "export LATER=1\n"


def told(script: str, tmp_path: Path, shell: str) -> list[str]:
    """Return what a shell has of the variable and of what comes after it, once it has read a script."""
    file = tmp_path / "x.sh"
    file.write_text(script)
    assert subprocess.run((shell, "-n", str(file)), capture_output=True, text=True, check=False).stderr == ""
    ask = f'. "$1"; echo "${{{VARIABLE}-unset}} ${{LATER-unset}}"'
    ran = subprocess.run((shell, "-c", ask, shell, str(file)), capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"})
    return [ran.stdout.strip(), ran.stderr.strip()]


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize(
    "script",
    [
        f"export {VARIABLE}=/usr/local/cuda/lib64\n",
        f'{VARIABLE}="/a:${{{VARIABLE}:-}}"  # for CUDA\nexport {VARIABLE}\n',
        f"if [ -d / ]; then\n    export {VARIABLE}=/a\nfi\n",
        f"if [ -d / ]; then\n\texport {VARIABLE}=/a:\\\n/b:\\\n\t/c\nfi\n".replace("\t/c", "/c"),
        f"set_it() {{\n  export {VARIABLE}='/a b'\n}}\nset_it\n",
        f"[ -d / ] &&\n  export {VARIABLE}=/a\n",
        f"[ -d / ] && \\\n:\nexport {VARIABLE}=/a\n",
        f"for one in 1; do\nexport {VARIABLE}=/a${{x:+:$x}}\ndone\n",
        f"# a remark \\\nexport {VARIABLE}=/a\n",
    ],
)
def test_a_script_without_the_setting_is_read_to_its_end(script: str, shell: str, tmp_path: Path) -> None:
    assert not told(script + LATER, tmp_path, shell)[0].startswith("unset")
    without = without_setting(script + LATER, VARIABLE)
    assert without is not None
    heard, errors = told(without, tmp_path, shell)
    assert (heard.split()[-1], errors) == ("1", "")
    assert heard.split()[:-1] in (["unset"], [])


@pytest.mark.parametrize(
    "script",
    [
        f"export {VARIABLE}=/a; export OTHER=1\n",
        f"export {VARIABLE}=/a OTHER=1\n",
        f"{VARIABLE}=/a ldconfig\n",
        f"export {VARIABLE}=/a && . /etc/other\n",
        f'export {VARIABLE}="/a:\n/b"\n',
        f"export {VARIABLE}=$(cat /etc/where)\n",
        f"export OTHER=1 \\\n  {VARIABLE}=/a\n",
        f"case x in\nx)\n  export {VARIABLE}=/a ;;\nesac\n",
        f"cat <<END\nexport {VARIABLE}=/a\nEND\n",
        f"(\nexport {VARIABLE}=/a )\n",
    ],
)
def test_a_line_that_does_more_is_left_to_a_person(script: str) -> None:
    assert without_setting(script, VARIABLE) is None


def test_what_does_not_set_it_stays_to_the_letter() -> None:
    script = f'# {VARIABLE}=/a\necho "${VARIABLE}"\nexport MY_{VARIABLE}=/a \\\n  B=1\n'
    assert without_setting(script, VARIABLE) == script
