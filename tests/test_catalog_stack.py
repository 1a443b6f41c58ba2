"""The tables: every row says where it comes from, is read strictly, and agrees with its neighbours."""

from __future__ import annotations

import re

import msgspec
import pytest

from steps.catalog import frameworks, load, stack
from steps.catalog.versions import at_least, belongs, line, number
from steps.compat.wheels import cuda_of

FILES = (
    "architectures.toml",
    "drivers.toml",
    "cuda.toml",
    "cuda_repos.toml",
    "cudnn.toml",
    "nccl.toml",
    "distros.toml",
    "torch.toml",
    "tensorflow.toml",
    "jax.toml",
    "frameworks.toml",
    "rocm.toml",
    "env_tools.toml",
    "indexes.toml",
)


@pytest.mark.parametrize("file", FILES)
def test_every_row_has_a_source(file: str) -> None:
    arrays = {name: rows for name, rows in load.document(file).items() if isinstance(rows, list)}

    assert arrays
    assert [(name, row) for name, rows in arrays.items() for row in rows if not str(row.get("source", "")).strip()] == []


@pytest.mark.parametrize("file", FILES)
def test_every_file_says_when_it_was_checked_and_names_no_build_machine(file: str) -> None:
    text = str(load.document(file))

    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", load.document(file)["checked"])
    assert "mirror.example" not in text
    assert "/work/" not in text


def test_a_row_without_a_source_is_refused() -> None:
    row = {**load.document("drivers.toml")["branch"][0]}
    del row["source"]

    with pytest.raises(msgspec.ValidationError, match="source"):
        msgspec.convert(row, stack.Branch)


def test_a_row_with_an_unknown_key_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="speed"):
        msgspec.convert({**load.document("drivers.toml")["branch"][0], "speed": "fast"}, stack.Branch)


def test_code_inside_a_wheel_has_its_own_source() -> None:
    unsaid = [
        (row.version, variant.name) for row in frameworks.torch_releases() for variant in row.variant if variant.arch and not variant.source
    ]

    assert unsaid == []


def test_all_tables_are_there_in_full() -> None:
    counts = {
        "architectures": len(stack.architectures()),
        "branches": len(stack.branches()),
        "cuda": len(stack.cudas()),
        "cudnn": len(stack.cudnns()),
        "nccl": len(stack.nccls()),
        "torch": len(frameworks.torch_releases()),
        "tensorflow": len(frameworks.tensorflow_releases()),
        "jax": len(frameworks.jax_releases()),
    }

    assert counts == {"architectures": 26, "branches": 27, "cuda": 24, "cudnn": 64, "nccl": 17, "torch": 32, "tensorflow": 14, "jax": 10}


def test_rows_refer_to_rows_that_exist() -> None:
    branches, cudas = stack.branches(), stack.cudas()
    for row in stack.architectures():
        assert row.last_branch is None or row.last_branch in branches
        assert row.last_cuda is None or row.last_cuda in cudas or number(row.last_cuda) < (11,)
    assert all(row.branch in branches for row in cudas.values())
    torch_cudas = {cuda for row in frameworks.torch_releases() for variant in row.variant if (cuda := cuda_of(variant.name))}
    assert torch_cudas - set(cudas) == {"10.2"}


@pytest.mark.parametrize(
    ("name", "capability", "chip", "found"),
    [
        ("blackwell", "12.0", "GB202", "12.0"),
        ("blackwell", None, "GB203", "12.0"),
        ("hopper", None, None, "9.0"),
        ("blackwell", None, None, None),
        (None, None, None, None),
        (None, "99.0", None, None),
    ],
)
def test_an_architecture_is_found_or_not_guessed(name: str | None, capability: str | None, chip: str | None, found: str | None) -> None:
    row = stack.architecture_of(name, capability, chip)

    assert (row.compute_capability if row else None) == found


@pytest.mark.parametrize(
    ("os_id", "version", "codename", "repository"),
    [
        ("ubuntu", "24.04", "noble", "ubuntu2404"),
        ("debian", "12", "bookworm", "debian12"),
        ("rocky", "9.4", None, "rhel9"),
        ("ubuntu", "19.10", None, None),
        (None, None, None, None),
    ],
)
def test_a_distribution_is_found_or_not_guessed(
    os_id: str | None, version: str | None, codename: str | None, repository: str | None
) -> None:
    row = stack.distribution_of(os_id, version)

    assert (row.codename if row else None) == codename
    assert (row.token if row else None) == repository


def test_versions_are_compared_by_number() -> None:
    assert at_least("580", "580.65.06")
    assert at_least("580.95.05", "580.65.06")
    assert not at_least("575.57.08", "580.65.06")
    assert belongs("9.10.2.21", "9.10")
    assert not belongs("9.10.2.21", "9.1")
    assert line("13.0.3") == "13.0"
    assert number("") == ()
