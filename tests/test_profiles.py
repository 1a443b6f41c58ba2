"""A profile is read strictly: every slip names its file, line and key, and what is written is read back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steps import profiles
from steps.errors import InputError
from steps.model.profile import DriverAnswers, EnvironmentAnswers, Profile, ToolkitAnswers, answered
from steps.text import Language, say_error


@pytest.mark.parametrize(
    ("text", "code", "line", "key"),
    [
        ("[toolkit]\ncudda = '12.8'\n", "profile-key-near", 2, "cudda"),
        ("[driver]\nbranch = '580'\n\n[zoo]\na = 1\n", "profile-key", 4, "zoo"),
        ("[driver]\nbranch = 580\n", "profile-quotes", 2, "driver.branch"),
        ("schema = 1\n[driver]\nflavor = 'opne'\n", "profile-choice", 3, "driver.flavor"),
        ("[nccl]\nextra = { NCCL_DEBUG = 1 }\n", "profile-quotes", 2, "nccl.extra"),
        ("[driver]\nignore = ['0000:01:00.0', 3]\n", "profile-quotes", 2, "driver.ignore"),
        ("driver = 3\n", "profile-type", 1, "driver"),
        ("\nschema = '1'\n", "profile-type", 2, "schema"),
        ("schema = true\n", "profile-type", 1, "schema"),
        ("schema = 1\ndriver = { branch = '580', flavr = 'open' }\n", "profile-key-near", 2, "flavr"),
        ("schema = 1\n[toolkit]\ncuda = '12.8'\n[[driver]]\nbranch = '580'\n", "profile-type", 4, "driver"),
        ("[driver]\nbranch = '580; rm -rf /'\n", "profile-shape", 2, "driver.branch"),
        ("[driver]\nignore = ['0000:01:00.0', 'GPU 0']\n", "profile-shape", 2, "driver.ignore"),
        ("[toolkit]\ncuda = 'newest'\n", "profile-shape", 2, "toolkit.cuda"),
        ("[environment]\npython = '3.x'\n", "profile-shape", 2, "environment.python"),
        ("[environment]\nname = '../x'\n", "profile-shape", 2, "environment.name"),
        ("[nccl]\ninterface = 'eno1 eno2'\n", "profile-shape", 2, "nccl.interface"),
        ("[nccl]\nextra = { LD_PRELOAD = 'x.so' }\n", "profile-shape", 2, "nccl.extra.LD_PRELOAD"),
        ('[nccl]\nextra = { NCCL_A = "x\\ny" }\n', "profile-shape", 2, "nccl.extra.NCCL_A"),
        ('[nccl]\nextra = { "NCCL_A\\nB" = "x" }\n', "profile-shape", 2, "nccl.extra.NCCL_A�B"),
        ("[frameworks]\nnumpy = '2.2.6 --index-url http://evil'\n", "profile-shape", 2, "frameworks.numpy"),
        ("[frameworks]\n'evil; rm' = '1'\n", "profile-shape", 2, "frameworks.evil; rm"),
        ("[frameworks]\ntouch = '2.14.1'\n", "profile-key-near", 2, "touch"),
        (f"schema = {'9' * 5000}\n", "profile-syntax", None, None),
        ("[driver]\nsource = 'keep'\nbranch = '580'\n", "profile-keep", 3, "driver.branch"),
        ("[driver]\nsource = 'keep'\nflavor = 'open'\n", "profile-keep", 3, "driver.flavor"),
        ("[prompts]\nconda-term = 'reject'\n", "profile-key-near", 2, "conda-term"),
        ("[prompts]\nconda-terms = 'perhaps'\n", "profile-prompt", 2, "prompts.conda-terms"),
        ("[prompts]\nsudo-password = 'hunter2'\n", "profile-prompt-person", 2, "prompts.sudo-password"),
        ("[prompts]\ndpkg-conffile = true\n", "profile-type", 1, "prompts"),
    ],
)
def test_a_slip_is_named_with_its_line(text: str, code: str, line: int | None, key: str | None) -> None:
    with pytest.raises(InputError) as caught:
        profiles.parse(text, "lab.toml")
    assert (caught.value.code, caught.value.params.get("line"), caught.value.params.get("key")) == (code, line, key)
    assert caught.value.exit_code == 2
    languages: tuple[Language, ...] = ("en", "zh_CN")
    assert all("lab.toml" in say_error(language, caught.value.code, caught.value.params) for language in languages)


def test_credentials_are_refused_and_not_repeated() -> None:
    with pytest.raises(InputError) as caught:
        profiles.parse("[network]\nproxy = 'http://ada:hunter2@proxy.example:3128'\n", "lab.toml")
    assert (caught.value.code, caught.value.params["line"]) == ("profile-secret", 2)
    assert "hunter2" not in str(caught.value.params)


def test_another_schema_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        profiles.parse("schema = 2\n", "lab.toml")
    assert caught.value.code == "profile-schema"


def test_broken_toml_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        profiles.parse("[driver\n", "lab.toml")
    assert caught.value.code == "profile-syntax"


def test_the_nearest_key_is_suggested() -> None:
    with pytest.raises(InputError) as caught:
        profiles.parse("[toolkit]\ncudda = '12.8'\n", "lab.toml")
    assert "Did you mean `cuda`?" in say_error("en", caught.value.code, caught.value.params)


def test_the_machine_it_was_made_for_is_read_back() -> None:
    written = profiles.dump(Profile(), "4× RTX 4090 · Ubuntu 22.04.4")
    assert profiles.made_for_line(written) == "4× RTX 4090 · Ubuntu 22.04.4"
    assert profiles.made_for_line(profiles.dump(Profile())) is None


lines_of_versions = st.none() | st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,2})?", fullmatch=True)


@given(
    branch=lines_of_versions,
    cuda=lines_of_versions,
    name=st.none() | st.from_regex(r"[^\s/\x00-\x1f~$-][^/\x00-\x1f]{0,19}", fullmatch=True),
    frameworks=st.dictionaries(
        st.from_regex(r"x[A-Za-z0-9._-]{0,6}[A-Za-z0-9]", fullmatch=True),
        st.from_regex(r"[0-9][A-Za-z0-9.+!]{0,7}", fullmatch=True),
        max_size=3,
    ),
)
def test_what_is_written_is_read_back(branch: str | None, cuda: str | None, name: str | None, frameworks: dict[str, str]) -> None:
    profile = Profile(
        driver=DriverAnswers(branch=branch),
        toolkit=ToolkitAnswers(cuda=cuda),
        environment=EnvironmentAnswers(name=name),
        frameworks=frameworks,
    )
    assert profiles.parse(profiles.dump(profile), "lab.toml") == profile


def test_a_patch_sets_and_takes_out() -> None:
    profile = answered(Profile(), {"driver.branch": "580", "frameworks.torch": "2.13.0"})
    assert (profile.driver.branch, profile.frameworks) == ("580", {"torch": "2.13.0"})
    assert answered(profile, {"driver.branch": None, "frameworks.torch": None}) == Profile()


def test_answers_to_programs_are_read_and_written_back() -> None:
    said = profiles.parse("[prompts]\nconda-terms = 'reject'\nconda-location = '/opt/conda'\n", "lab.toml")
    assert said.prompts == {"conda-terms": "reject", "conda-location": "/opt/conda"}
    assert profiles.parse(profiles.dump(said), "lab.toml") == said


@pytest.mark.parametrize(
    "name", ["onnxruntime", "cupy-cuda14x", "tensorrt-cu14", "tensorflow-cpu", "Torch", "scikit_learn", "torchtext", "torchdata", "jaxlib"]
)
def test_a_package_that_is_merely_named_like_a_known_one_is_taken(name: str) -> None:
    assert profiles.parse(f"[frameworks]\n{name} = '1.0'\n", "lab.toml").frameworks == {name: "1.0"}


def test_a_word_that_is_none_of_the_answers_is_told_with_all_of_them() -> None:
    with pytest.raises(InputError) as caught:
        profiles.parse("[environment]\nmanager = 'poetry'\n", "lab.toml")
    said = say_error("zh_CN", caught.value.code, caught.value.params)
    assert "poetry" in said
    assert "uv, venv" in said
    assert "enum" not in said


def test_a_name_that_resembles_no_key_gets_no_neighbour() -> None:
    with pytest.raises(InputError) as caught:
        profiles.parse("[prompts]\nfoo = 'bar'\n", "lab.toml")
    assert (caught.value.code, caught.value.params["key"]) == ("profile-key", "foo")
