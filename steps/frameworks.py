"""The frameworks step: what goes into the Python environment, in which build, and who makes the environment."""

from __future__ import annotations

import msgspec

from steps.catalog import frameworks as catalog
from steps.catalog.versions import line
from steps.compat import candidates, framework_plan, package_sets, solve
from steps.compat.case import Case
from steps.compat.framework_plan import DEFAULT_NAME
from steps.compat.framework_rules import refused
from steps.compat.search import releases
from steps.compat.together_rules import frameworks_conflict
from steps.compat.wheels import cuda_of, jax_extra, pythons_of, torch_release
from steps.detect import measures
from steps.model.action import AnyAction
from steps.model.base import Words, phrase
from steps.model.choice import Choice, Mark, Note, Option
from steps.model.finding import Finding, Patch, StepKey
from steps.model.machine import Machine, judged
from steps.model.plan import Target
from steps.model.profile import Profile, answered

KEY: StepKey = "frameworks"
MAIN = ("torch", "jax", "tensorflow")
BUILDS, ENVIRONMENTS = 3, 2
"""Rows of two groups: all four fill the 18 rows of the screen."""


def applies(machine: Machine) -> bool:
    """Every machine can have an environment; without a card it computes on the processor."""
    return True


def intro(machine: Machine, answers: Profile) -> Words:
    """Return where the environment goes and who makes it."""
    environment = answers.environment
    manager, line_of = environment.manager or "uv", environment.python or "3"
    if environment.path:
        return phrase("frameworks.intro", place=environment.path, manager=manager, python=line_of)
    return phrase("frameworks.intro-default", name=environment.name or DEFAULT_NAME, manager=manager, python=line_of)


def check(machine: Machine, answers: Profile) -> tuple[Finding, ...]:
    """Return what is to be said about the frameworks."""
    return (*solve.judge_frameworks(machine, answers), *_already_there(machine, answers))


def _already_there(machine: Machine, answers: Profile) -> tuple[Finding, ...]:
    """Return that an environment of this name is there: nothing is removed, and one of another Python is not touched at all."""
    asked = answers.environment
    name = asked.name or DEFAULT_NAME
    if not answers.frameworks:
        return ()
    here = next((one for one in machine.environments if (one.path or "") == asked.path or _is_at(one.path, asked.path, name)), None)
    if here is None:
        return ()
    other = asked.python is not None and here.python is not None and line(here.python) != asked.python
    holds = " ".join(f"{package} {version}" for package, version in list(here.frameworks.items())[:3]) or "–"
    return (
        Finding(
            code="environment-other-python" if other else "environment-exists",
            severity="warning" if other else "info",
            step=KEY,
            subject=here.path or name,
            params={"path": here.path or name, "python": here.python or "?", "wanted": asked.python or "?"},
            because=(phrase("frameworks.because.environment", path=here.path or name, python=here.python or "?", holds=holds),),
            fix={"environment.name": f"{name}-2"} if asked.path is None else None,
        ),
    )


def _is_at(path: str | None, asked: str | None, name: str) -> bool:
    """Return whether an environment lies where one of this name would be made, in whosever home."""
    return asked is None and path is not None and path.endswith(f"/envs/{name}")


def actions(machine: Machine, answers: Profile, target: Target) -> tuple[AnyAction, ...]:
    """Return what makes the environment with all of it."""
    return framework_plan.plan(Case(machine, answers), target)


def choices(machine: Machine, answers: Profile) -> tuple[Choice, ...]:
    """Return the frameworks, PyTorch's build, sets of packages, and the environment."""
    case = Case(machine, answers)
    beside = solve.beside_driver(case)
    best = (solve.chosen(machine, beside) if beside else solve.recommend(machine).choices) or Profile()
    main = tuple(_framework(case, best, name) for name in MAIN)
    wanted = answers.frameworks
    groups = [
        Choice(
            key="frameworks",
            kind="many",
            options=main,
            taken=tuple(name for name in wanted if name in MAIN),
        )
    ]
    builds = _builds(case, best)
    if len(builds) > 1:
        groups.append(
            Choice(
                key="frameworks.variant",
                kind="one",
                title=phrase("frameworks.group.build"),
                options=builds,
                taken=(wanted.get("variant", ""),),
            )
        )
    sets = catalog.package_sets()
    groups.append(
        Choice(
            key="frameworks.sets",
            kind="many",
            title=phrase("frameworks.group.sets"),
            options=tuple(_set(case, row) for row in sets),
            taken=tuple(row.name for row in sets if package_sets.is_taken(answers, row)),
        )
    )
    environment = answers.environment
    groups.append(
        Choice(
            key="environment",
            kind="one",
            title=phrase("frameworks.group.environment"),
            options=_environments(case, best, ENVIRONMENTS if len(builds) > 1 else ENVIRONMENTS + 1),
            taken=(f"{environment.manager or 'uv'}-{environment.python}",),
        )
    )
    return tuple(groups)


# --- frameworks -----------------------------------------------------------------------------------

_WORST_FIRST = ("error", "warning", "info", "ok")
_TITLES = {"torch": "PyTorch", "tensorflow": "TensorFlow", "jax": "JAX"}


def _framework(case: Case, best: Profile, name: str) -> Option:
    """Return the row of one framework: as chosen, else in the release that fits best."""
    wanted = case.answers.frameworks
    version = wanted.get(name) or best.frameworks.get(name) or _fitting(case, name)
    adding: dict[str, str | None] = {f"frameworks.{name}": version}
    if name == "torch" and "variant" not in wanted and (variant := best.frameworks.get("variant")):
        adding["frameworks.variant"] = variant
    removing: dict[str, str | None] = {f"frameworks.{name}": None}
    if name == "torch":
        # It comes and goes with what is made for it.
        adding |= {"frameworks.torchvision": _fitting(Case(case.machine, answered(case.answers, adding)), "torchvision") or None}
        removing |= {f"frameworks.{one}": None for one in ("torchvision", "torchaudio") if one in wanted}
    answers = answered(case.answers, adding)
    changed = Case(case.machine, answers)
    judged = solve.judge_frameworks(case.machine, answers, lambda finding: name in finding.subject)
    findings = tuple(sorted(judged, key=lambda finding: _WORST_FIRST.index(finding.severity)))
    if name not in wanted:
        findings = tuple(_instead(case, finding, adding) for finding in findings)
    mark, tag = _verdict(findings, "fits")
    if mark == "good" and name in best.frameworks and wanted.get(name, version) == best.frameworks[name] and name == "torch":
        tag = phrase("frameworks.tag.recommended")
    return Option(
        value=name,
        label=_label(changed, name, version),
        short=f"torch {version}" if name == "torch" else "",
        mark=mark if version else "unknown",
        tag=tag if version else phrase("frameworks.tag.unknown"),
        sentences=() if mark == "bad" else (_explained(changed, name),),
        findings=findings,
        notes=_notes(changed, name) if mark != "bad" else (Note(label="instead", text=phrase("frameworks.note.own-environment")),),
        patch=removing if name in wanted else adding,
        recommended=name in best.frameworks,
    )


def _set(case: Case, row: catalog.PackageSet) -> Option:
    """Return the row of one set of packages: in the versions that the solver chooses, beside what is chosen already."""
    taken = package_sets.is_taken(case.answers, row)
    adding = package_sets.taking(case.machine, case.answers, row)
    if not adding and not taken:
        # Why it cannot be had is said by the newest of each.
        adding = {f"frameworks.{name}": _fitting(case, name) for name in row.packages if name not in case.answers.frameworks}
    answers = case.answers if taken else answered(case.answers, adding)
    named = tuple(key.partition(".")[2] for key in adding)
    judged = solve.judge_frameworks(case.machine, answers, lambda finding: any(name in finding.subject for name in named))
    findings = tuple(sorted(judged, key=lambda finding: _WORST_FIRST.index(finding.severity)))
    mark, tag = _verdict(findings, "fits")
    packages = " ".join(name for name in row.packages if name != "torch")
    notes = [Note(label="leads-to", text=f"$ {_installing(case)} install {packages}", command=True)]
    if row.build and "toolkit.cuda" in adding:
        notes.append(Note(label="trap", text=phrase("frameworks.note.build", package=row.build.package, cuda=answers.toolkit.cuda or "")))
    notes.append(Note(label="source", text=row.source))
    return Option(
        value=row.name,
        label=phrase(f"frameworks.set.{row.name}.label"),
        mark=mark,
        tag=tag,
        sentences=() if mark == "bad" else (phrase(f"frameworks.set.{row.name}.explain"),),
        findings=findings,
        notes=tuple(notes) if mark != "bad" else (),
        patch=package_sets.leaving(case.answers, row) if taken else adding,
    )


def _explained(case: Case, name: str) -> Words:
    """Return what a framework is in the build that this machine and the answers come to."""
    variant = case.answers.frameworks.get("variant") or ""
    if name == "torch":
        return phrase(f"frameworks.explain.torch{'-cpu' if variant == 'cpu' else '-rocm' if variant.startswith('rocm') else ''}")
    if name == "jax":
        extra = jax_extra(case)
        key = "jax" if extra and "torch" in case.answers.frameworks else "jax-alone" if extra else "jax-cpu"
        return phrase(f"frameworks.explain.{key}", cuda=(extra or "").removeprefix("cuda"))
    if name == "tensorflow":
        release = next((row for row in catalog.tensorflow_releases() if row.version == case.answers.frameworks.get(name)), None)
        computes = case.gpus and release is not None and release.cuda_major
        return phrase(f"frameworks.explain.tensorflow{'' if computes else '-cpu'}", cuda=str(release.cuda_major) if release else "")
    return phrase(f"frameworks.explain.{name}")


def _instead(case: Case, finding: Finding, adding: Patch) -> Finding:
    """Return a clash with the repair that fits a framework which is not taken yet: take it in place of the other."""
    if finding.code != "frameworks-conflict":
        return finding
    # The variant is PyTorch's; only JAX's extra follows it too.
    family = ("torch", "torchvision", "torchaudio", *(() if "jax" in case.answers.frameworks else ("variant",)))
    other = str(finding.params.get("one"))
    leaving = [name for name in (family if other == "torch" else (other,)) if name in case.answers.frameworks]
    return msgspec.structs.replace(finding, fix={**{f"frameworks.{name}": None for name in leaving}, **adding})


def _fitting(case: Case, name: str) -> str:
    """Return the newest release of a framework that fits the answers so far, else the newest; "" when we know none."""
    if name == "torch":
        return next((release.version for release, _ in candidates.torch_candidates(case)), "")
    if name == "torchvision":
        release = torch_release(case)
        return release.torchvision[-1] if release and release.torchvision else ""
    versions = releases(name)
    for version in versions:
        changed = Case(case.machine, answered(case.answers, {f"frameworks.{name}": version}))
        # Most of what does not fit is refused by its neighbours, which costs less to see.
        clashes = any(one.severity == "error" and name in one.subject for one in frameworks_conflict(changed))
        if not clashes and not refused(changed, name):
            return version
    return versions[0] if versions else ""


def _label(case: Case, name: str, version: str) -> str:
    """Return a framework with its version, at most 17 cells."""
    if name == "jax":
        return f"JAX {line(version)} {jax_extra(case) or 'CPU'}"
    if name == "tensorflow":
        return f"TensorFlow {line(version)}"
    if name == "torch":
        return f"PyTorch {version}"
    return f"{_TITLES.get(name, name)}"


def _verdict(findings: tuple[Finding, ...], word: str) -> tuple[Mark, Words]:
    """Return the mark of a row and the word beside it."""
    for severity in ("error", "warning"):
        worst = next((finding for finding in findings if finding.severity == severity), None)
        if worst:
            return "bad" if severity == "error" else "catch", phrase(f"frameworks.finding.{worst.code}.tag")
    return "good", phrase(f"frameworks.tag.{word}")


def _notes(case: Case, name: str) -> tuple[Note, ...]:
    """Return what a framework leads to, and where its facts stand."""
    shown = next((one for one in framework_plan.requirements(case) if one.partition("[")[0].partition("=")[0] == name), name)
    notes = [Note(label="leads-to", text=f"$ {_installing(case)} install {shown}", command=True)]
    release = torch_release(case)
    if name == "torch" and release:
        notes.append(Note(label="cost", text=phrase("frameworks.note.cost", size=measures.download(framework_plan.size(case)))))
        if release.confidence == "low":
            notes.append(Note(label="trap", text=phrase("frameworks.note.low")))
        notes.append(Note(label="source", text=release.source))
    return tuple(notes)


def _installing(case: Case) -> str:
    """Return the program that installs, as a person would type it."""
    return "pip" if case.answers.environment.manager == "venv" else "uv pip"


# --- builds and environments ----------------------------------------------------------------------


def _builds(case: Case, best: Profile) -> tuple[Option, ...]:
    """Return the builds of the chosen PyTorch: the best for this machine first."""
    release = torch_release(case)
    if release is None:
        return ()
    chosen = case.answers.frameworks.get("variant")
    advised = best.frameworks.get("variant")
    names = [name for one, name in candidates.torch_candidates(case, release.version) if one is release]
    names = [*(name for name in (chosen, advised) if name and any(row.name == name for row in release.variant)), *names, "cpu"]
    return tuple(_build(case, release, name, name == advised) for name in list(dict.fromkeys(names))[:BUILDS])


def _build(case: Case, release: catalog.TorchRelease, name: str, advised: bool) -> Option:
    """Return the row of one build."""
    patch: Patch = {"frameworks.variant": name}
    answers = answered(case.answers, patch)
    findings = solve.judge_frameworks(case.machine, answers, lambda finding: "torch" in finding.subject)
    mark, tag = _verdict(findings, "recommended" if advised else "fits")
    if mark == "good" and name == "cpu" and (case.gpus or (judged(case.machine) and not advised)):
        mark, tag = "catch", phrase("frameworks.tag.no-gpu")
    cuda = cuda_of(name)
    text = (
        phrase("frameworks.explain.build", cuda=cuda)
        if cuda
        else phrase("frameworks.explain.cpu" if name == "cpu" else "frameworks.explain.rocm", name=name)
    )
    place = phrase("frameworks.note.default" if name == release.default_variant else "frameworks.note.index", name=name)
    return Option(
        value=name,
        label=name,
        mark=mark,
        tag=tag,
        sentences=() if mark == "bad" else (text,),
        findings=findings,
        notes=(Note(label="from", text=place), Note(label="source", text=release.source)) if mark != "bad" else (),
        patch=patch,
        recommended=advised,
    )


def _environments(case: Case, best: Profile, most: int) -> tuple[Option, ...]:
    """Return who makes the environment and with which Python, at most so many: the chosen, the recommended, and what else fits."""
    chosen = (case.answers.environment.manager or "uv", case.answers.environment.python)
    known = pythons_of(case, "torch")
    fitting = candidates.python_candidates(case, known[0] if known else candidates.PYTHONS)
    advised = ("uv", best.environment.python)
    # Who has conda is used to it.
    own = [("conda", advised[1] or fitting[0])] if case.machine.tools.get("conda") and (advised[1] or fitting) else []
    pairs = [chosen, advised, *own, *(("uv", python) for python in fitting), *(("venv", python) for python in fitting)]
    listed = list(dict.fromkeys(pair for pair in pairs if pair[1]))[: most - 1]
    made = {manager for manager, _ in listed}
    listed += [pair for pair in (*own, *(("venv", python) for python in fitting)) if pair[0] not in made][: most - len(listed)]
    return tuple(_environment(case, manager, python, (manager, python) == advised) for manager, python in listed if python)


_TOOLS = {"conda": "miniforge"}
"""Which row of the tools tells of a manager, where it is not its own name."""


def _environment(case: Case, manager: str, python: str, advised: bool) -> Option:
    """Return the row of one manager with one Python."""
    patch: Patch = {"environment.manager": manager, "environment.python": python}
    answers = answered(case.answers, patch)
    findings = solve.judge_frameworks(case.machine, answers, lambda finding: finding.code == "no-wheel-for-python")
    mark, tag = _verdict(findings, "recommended" if advised else "works")
    return Option(
        value=f"{manager}-{python}",
        label=f"{manager} Python {python}",
        mark=mark,
        tag=tag,
        sentences=()
        if mark == "bad"
        else (
            phrase(
                "frameworks.explain.uv"
                if manager == "uv"
                else "frameworks.explain.venv"
                if manager == "venv"
                else "frameworks.explain.conda"
            ),
        ),
        findings=findings,
        notes=tuple(Note(label="source", text=row.source) for row in catalog.tools() if row.name == _TOOLS.get(manager, manager)),
        patch=patch,
        recommended=advised,
    )
