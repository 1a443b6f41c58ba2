"""What one framework does to its process is a finding about that one alone."""

from __future__ import annotations

import venv
from pathlib import Path

import pytest

from steps import proof, resources
from steps.host.local import LocalHost
from steps.model.base import Phrase
from steps.model.verdict import Rung

_BODIES = {
    "crashes": "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n",
    "hangs": "import time\ntime.sleep(600)\n",
    "leaves": "import os\nos._exit(3)\n",
    "raises": "raise ImportError('libcudart.so.12 is missing')\n",
    "advises": (
        "try:\n    raise ImportError('core.so: failed to map segment')\n"
        "except ImportError as error:\n    raise ImportError('\\n\\nPLEASE READ THIS\\n' + 'advice\\n' * 20) from error\n"
    ),
    "discards": "try:\n    {}['a guess']\nexcept KeyError:\n    raise ImportError('too old\\n' + 'advice\\n' * 20) from None\n",
    "wraps": "raise RuntimeError('CUDA error: no kernel image\\nFor debugging consider\\n')\n",
    "works": "",
}


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the interpreter of an environment whose packages do all that a broken one may do."""
    folder = tmp_path_factory.mktemp("env")
    venv.create(folder, symlinks=True)
    packages = next(folder.glob("lib/python3*/site-packages"))
    for name, body in _BODIES.items():
        Path(packages, name).mkdir()
        Path(packages, name, "__init__.py").write_text(body)
        info = Path(packages, f"{name}-1.0.dist-info")
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "RECORD").write_text(f"{name}/__init__.py,,\n")
    return f"{folder}/bin/python"


def tried(interpreter: str, *names: str) -> dict[str, Rung]:
    return {rung.id: rung for rung in proof.imports(LocalHost(), interpreter, dict.fromkeys(names, "1.0"), gpus=0)}


def because(rung: Rung) -> str:
    return rung.because.key if isinstance(rung.because, Phrase) else rung.because


@pytest.mark.parametrize(
    ("breaks", "reason"),
    [
        ("crashes", "verify.because.import-killed"),
        ("leaves", "verify.because.import-silent"),
        ("raises", "ImportError: libcudart.so.12 is missing"),
        # A page of advice hides the reason, which stands in the error that was caught; a short text is shown in one line.
        ("advises", "ImportError: core.so: failed to map segment"),
        # What an error was raised without has nothing to do with it.
        ("discards", f"ImportError: too old {'advice ' * 20}".strip()),
        ("wraps", "RuntimeError: CUDA error: no kernel image For debugging consider"),
        ("hangs", "verify.because.import-hung"),
    ],
)
def test_one_that_breaks_its_process_is_named_and_the_next_is_tried_all_the_same(
    interpreter: str, breaks: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proof, "_IMPORT_SECONDS", 5)
    found = tried(interpreter, breaks, "works")
    assert (found[breaks].state, because(found[breaks])) == ("failed", reason)
    assert (found["works"].state, found["works"].detail) == ("passed", "1.0")


def test_what_is_not_there_is_said_to_be_not_installed(interpreter: str) -> None:
    assert because(tried(interpreter, "absent")["absent"]) == "verify.because.not-installed"


@pytest.mark.parametrize("program", sorted(Path(resources.path_of("training", "ranks.py")).parent.glob("*.py")), ids=lambda path: path.stem)
def test_the_way_to_call_a_program_that_its_docstring_names_finds_what_it_imports(program: Path) -> None:
    text = program.read_text()
    # Isolated, Python does not look beside the program.
    assert not ("from ranks import" in text and f"python -I {program.name}" in text)
