"""The rules of the house that no linter knows: words in both languages, words for every code, nothing left undone."""

from __future__ import annotations

import ast
import re
import string
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.fresh import CHECKOUT
from tui.cells import width

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

I18N = CHECKOUT / "assets" / "i18n"
AREAS = sorted(path.name for path in (I18N / "en").glob("*.toml"))
SOURCES = sorted(path for folder in ("tui", "steps") for path in (CHECKOUT / folder).rglob("*.py"))


def words(language: str, area: str) -> dict[str, str]:
    """Return the texts of one file by dotted key."""
    return dict(flat(tomllib.loads((I18N / language / area).read_text(encoding="utf-8")), area.removesuffix(".toml")))


def flat(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}.{key}")
        else:
            assert isinstance(value, str), f"{prefix}.{key} is no text"
            yield f"{prefix}.{key}", value


def braces(text: str) -> set[str]:
    """Return the names that a text is filled with; `{bringup}`, what a person types to call us, is always known."""
    return {name for _, name, _, _ in string.Formatter().parse(text) if name not in (None, "bringup")}


ENGLISH = {key: text for area in AREAS for key, text in words("en", area).items()}


# --- words ----------------------------------------------------------------------------------------


def test_both_languages_have_the_same_files() -> None:
    assert sorted(path.name for path in (I18N / "zh_CN").glob("*.toml")) == AREAS


@pytest.mark.parametrize("area", AREAS)
def test_both_languages_have_the_same_keys_and_braces(area: str) -> None:
    english, chinese = words("en", area), words("zh_CN", area)
    assert set(english) ^ set(chinese) == set()
    assert {key: braces(text) ^ braces(chinese[key]) for key, text in english.items() if braces(text) != braces(chinese[key])} == {}


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_tags_and_names_fit_their_columns(language: str) -> None:
    texts = {key: text for area in AREAS for key, text in words(language, area).items()}
    tags = {
        key: text
        for key, text in texts.items()
        if re.search(r"\.finding\.[^.]+\.tag$|^(driver|toolkit|frameworks|nccl|firmware|monitoring|hardware)\.tag\.", key)
    }
    names = {key: text for key, text in texts.items() if re.fullmatch(r"[a-z]+\.name", key)}
    assert {key: text for key, text in tags.items() if "{" not in text and width(text) > 11} == {}
    assert {key: text for key, text in names.items() if width(text) > 17} == {}


def test_chinese_is_chinese() -> None:
    """A text without one Chinese character was forgotten, unless it is a name, an address, a command, or nothing but marks and braces."""
    forgotten = {}
    for area in AREAS:
        for key, text in words("zh_CN", area).items():
            prose = re.findall(r"[A-Za-z]{2,}", re.sub(r"\{[^}]*\}|`[^`]*`", "", text))
            if len(prose) > 4 and not re.search(r"[\u4e00-\u9fff]", text) and " " in text and not text.startswith(("$ ", "# ")):
                forgotten[key] = text
    assert forgotten == {}


# --- codes and phrases of the code ------------------------------------------------------------------


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return every node of a module; read once for all tests."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def calls(*names: str) -> Iterator[tuple[Path, ast.Call]]:
    """Yield every call of these names in the package."""
    for path in SOURCES:
        for node in nodes(path):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name in names:
                    yield path, node


def literal(node: ast.Call, keyword: str) -> str | None:
    """Return the text that is given as the first argument or as `keyword`, or `None` when it is not a literal."""
    given = [argument.value for argument in node.keywords if argument.arg == keyword] or node.args[:1]
    return given[0].value if given and isinstance(given[0], ast.Constant) and isinstance(given[0].value, str) else None


def test_every_phrase_has_words() -> None:
    used = {key: path.name for path, node in calls("phrase", "Phrase") if (key := literal(node, "key")) is not None}
    assert {key: file for key, file in used.items() if key not in ENGLISH} == {}
    assert len(used) > 100


def test_every_error_has_a_sentence_and_says_what_helps() -> None:
    kinds = ("BringupError", "InputError", "PreflightError", "PrivilegeError", "Cancelled", "InTheWay", "Busy")
    used = {code: path.name for path, node in calls(*kinds) if (code := literal(node, "code")) is not None}
    nothing_helps = {"cancelled", "remove-refused"}  # said, and that is all
    assert {code: file for code, file in used.items() if f"error.{code}.sentence" not in ENGLISH} == {}
    assert {code: file for code, file in used.items() if f"error.{code}.remedy" not in ENGLISH and code not in nothing_helps} == {}


def finding_codes() -> dict[str, str]:
    """Return the finding codes that the package gives, with their file; also those that go through a rule's own helper."""
    found = {code: path.name for path, node in calls("Finding") if (code := literal(node, "code")) is not None}
    contract = {key.split(".")[2] for key in ENGLISH if ".finding." in key}
    for path in SOURCES:
        if "compat" in path.parts or "detect" in path.parts:
            for node in nodes(path):
                if isinstance(node, ast.Constant) and node.value in contract:
                    found.setdefault(node.value, path.name)
    return found


def test_every_finding_has_a_tag_a_sentence_and_a_remedy() -> None:
    missing = {}
    for code, file in finding_codes().items():
        homes = {key.split(".")[0] for key in ENGLISH if f".finding.{code}." in key}
        wanted = {"tag", "sentence", "remedy"}
        parts = {part for home in homes for part in wanted if f"{home}.finding.{code}.{part}" in ENGLISH}
        if parts != wanted:
            missing[code] = (file, sorted(wanted - parts))
    assert missing == {}


# --- what a linter does not look at -------------------------------------------------------------------


def test_nothing_is_left_to_do_and_no_shell_is_asked() -> None:
    """Files of data and words too, which ruff does not read."""
    files = [path for folder in ("tui", "steps", "assets", "tests", ".ci") for path in (CHECKOUT / folder).rglob("*") if path.is_file()]
    found = []
    for path in files:
        if path == Path(__file__) or path.suffix in (".pyc", ".json", ".png", ".svg"):
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        found += [
            f"{path.name}: {word}"
            for word in ("TO" + "DO", "FIX" + "ME", "XX" + "X ", "shell=" + "True", "mock." + "patch")
            if word in text
        ]
    assert found == []


def test_the_root_holds_what_the_owner_drew_and_nothing_else() -> None:
    drawn = {
        "pyproject.toml",
        "tui",
        "steps",
        "assets",
        "tests",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "bringup",
        "bringup.pyz",
    }
    ignored = {"__pycache__", "dist", "build", "shared"}
    found = {path.name for path in CHECKOUT.iterdir() if not path.name.startswith(".")} - ignored
    assert found - drawn == set()
    assert drawn - {"bringup.pyz"} - found == set()
