"""The NCCL step: which card the ranks talk over, how the GPUs copy, and the file that says so."""

from __future__ import annotations

import msgspec

from steps.compat import interfaces, nccl_conf, nccl_rows, together_rules, transport
from steps.compat import nccl as rules
from steps.compat.case import Case
from steps.detect import measures
from steps.model.action import AnyAction, FileIs, Write
from steps.model.base import Words, phrase
from steps.model.choice import Choice, Mark, Note, Option
from steps.model.finding import Finding, StepKey
from steps.model.hardware import Network
from steps.model.machine import Machine, judged
from steps.model.plan import Target
from steps.model.profile import Profile, answered

KEY: StepKey = "nccl"


def applies(machine: Machine) -> bool:
    """Return whether there is an NVIDIA GPU: NCCL carries nothing else."""
    return any(card.vendor == "nvidia" for card in judged(machine))


def intro(machine: Machine, answers: Profile) -> Words:
    """Return why the question is asked here."""
    return phrase("nccl.intro.many") if len(judged(machine)) > 1 else phrase("nccl.intro.one")


def choices(machine: Machine, answers: Profile) -> tuple[Choice, ...]:
    """Return the interface to take, and how the GPUs will copy."""
    transport = (_p2p(machine, answers), _infiniband(machine, answers), _gdr(machine, answers), _debug(answers))
    return (
        Choice(
            key="nccl.interface",
            kind="one",
            options=_interfaces(machine, answers),
            taken=(answers.nccl.interface,) if answers.nccl.interface else (),
        ),
        Choice(key="nccl.transport", kind="facts", title=phrase("nccl.group.transport"), options=transport),
        Choice(key="nccl.written", kind="facts", title=phrase("nccl.group.written"), options=(nccl_rows.written(machine, answers),)),
        *(
            Choice(
                key=f"nccl.file.{at}",
                kind="facts",
                title=phrase("nccl.group.file", path=one.path),
                options=nccl_rows.lines(machine, answers, one),
            )
            for at, one in enumerate(machine.ranks.files)
            if one.text.strip()
        ),
    )


def check(machine: Machine, answers: Profile) -> tuple[Finding, ...]:
    """Return every finding of this step."""
    return (*rules.judge_nccl(machine, answers), *(gap for gap in machine.gaps if gap.step == KEY))


def actions(machine: Machine, answers: Profile, target: Target) -> tuple[AnyAction, ...]:
    """Return the one file, when the answers ask for anything that does not stand in it."""
    text = nccl_conf.conf_text(machine, answers)
    return () if text is None else (_write(nccl_conf.CONF, text),)


def own_actions(machine: Machine, answers: Profile, target: Target) -> tuple[AnyAction, ...]:
    """Return the same as a person without root can have it: a file in their own home, which NCCL reads before the system's."""
    path = nccl_conf.user_conf(target.installer.home)
    text = nccl_conf.conf_text(machine, answers, path)
    return () if text is None else (msgspec.structs.replace(_write(path, text), by="user"),)


def _write(path: str, text: str) -> Write:
    """Return the action that writes one of NCCL's files."""
    return Write(
        id="nccl.conf",
        title=phrase("nccl.action.conf", path=path),
        why=phrase("nccl.action.why"),
        lane="files",
        path=path,
        text=text,
        done_when=(FileIs(path=path, text=text),),
        seconds=1.0,
    )


# --- interfaces ---------------------------------------------------------------------------------


def _interfaces(machine: Machine, answers: Profile) -> tuple[Option, ...]:
    """Return the real cards, fastest first, then NCCL's own choice, then what is ruled out."""
    best = interfaces.best_interface(machine)
    misled = len(judged(machine)) > 1 and best is not None and bool(_misleading(machine, answers))
    fitting = [one for one in machine.networks if interfaces.reason_against(one, machine.networks) is None]
    fitting.sort(key=lambda one: (one is not best, not interfaces.real(one), -(interfaces.speed(machine, one) or 0), one.name))
    ruled_out = [one for one in machine.networks if interfaces.reason_against(one, machine.networks) is not None]
    rows = [_interface(machine, answers, one, recommended=misled and one is best) for one in fitting]
    rows.append(_automatic(machine, answers, recommended=not misled))
    rows += [_interface(machine, answers, one, recommended=False) for one in ruled_out]
    return tuple(rows)


def _misleading(machine: Machine, answers: Profile) -> tuple[Network, ...]:
    """Return the interfaces that the NCCL of the planned PyTorch, or an older one where that is not known, would take in vain."""
    pins = (pin.partition("==") for pin in together_rules.torch_needs(Case(machine, answers)))
    release = next((version for name, _, version in pins if name.startswith("nvidia-nccl-")), None)
    return interfaces.misleading(machine, release)


def _local(misled: tuple[Network, ...]) -> str:
    """Return the end of a sentence's key where those that NCCL takes before all others have link-local addresses only."""
    return "-local" if misled and all(interfaces.goes_first(one) and one.up for one in misled) else ""


def _interface(machine: Machine, answers: Profile, network: Network, *, recommended: bool) -> Option:
    """Return the row of one interface."""
    finding = rules.on_interface(machine, network)
    reason = interfaces.reason_against(network, machine.networks)
    mark: Mark = "bad" if reason else "good" if interfaces.real(network) and network.up else "catch"
    tag = reason or (
        ("over-cards" if network.carriers else "up") if mark == "good" else network.kind if network.kind == "wifi" else "unsure"
    )
    known = interfaces.speed(machine, network)
    speed = measures.speed(known) if known else ""
    patch = {"nccl.interface": network.name}
    misled = _misleading(machine, answers)
    others = ", ".join(one.name for one in misled[:3])
    why = f"only{_local(misled)}" if recommended else tag
    sentence = phrase(f"nccl.explain.{why}", name=network.name, others=others, master=network.master or "?")
    return Option(
        value=network.name,
        label=_label(network.name, speed),
        short=network.name,
        mark=mark,
        tag=phrase(f"nccl.tag.{tag}"),
        sentences=(sentence,),
        findings=(finding,) if finding else (),
        notes=() if finding else (*_addresses(network), *nccl_rows.preview(machine, answered(answers, patch)), _PINNED),
        patch=patch,
        recommended=recommended,
    )


_PINNED = Note(label="trap", text=phrase("nccl.note.pinned"))


def _label(name: str, speed: str) -> str:
    """Return name and speed where both fit the row, else the name: a cut speed would be another speed."""
    return f"{name} {speed}" if speed and len(name) + len(speed) < 17 else name


def _addresses(network: Network) -> tuple[Note, ...]:
    """Return an interface's driver, speed and addresses as measured."""
    speed = measures.speed(network.speed_mbps) if network.speed_mbps else None
    said = ", ".join(part for part in (network.driver, speed, *network.addresses[:2]) if part)
    return (Note(label="measured", text=said),) if said else ()


def _automatic(machine: Machine, answers: Profile, *, recommended: bool) -> Option:
    """Return the row that leaves the interface to NCCL."""
    patch = {"nccl.interface": nccl_conf.AUTO}
    misled = _misleading(machine, answers)
    others = ", ".join(one.name for one in misled[:3])
    return Option(
        value=nccl_conf.AUTO,
        label=phrase("nccl.row.auto"),
        short=phrase("nccl.row.auto-short"),
        mark="good",
        tag=phrase("nccl.tag.works"),
        sentences=(phrase(f"nccl.explain.auto{_local(misled) or '-wrong'}", others=others) if misled else phrase("nccl.explain.auto"),),
        notes=nccl_rows.preview(machine, answered(answers, patch)),
        patch=patch,
        recommended=recommended,
    )


# --- transport ----------------------------------------------------------------------------------


def _p2p(machine: Machine, answers: Profile) -> Option:
    """Return how the GPUs copy to each other; Space turns direct copies off, and on again."""
    found = judged(machine)
    finding = transport.p2p_unsupported(machine, answers)
    kinds = sorted({one.kind for one in machine.links})
    linked = [kind for kind in kinds if kind.startswith("NV")]
    mark: Mark = "info"
    if answers.nccl.p2p == "off":
        detail, tag = "", "turned-off"
    elif len(found) < 2:
        detail, tag = "", "one-gpu"
    elif finding is not None:
        detail, tag = "", "via-memory"
    elif linked:
        detail, tag, mark = linked[0], "direct", "good"
    else:
        detail, tag, mark = kinds[0] if kinds else "", "proof-tells", "unknown"
    return Option(
        value="p2p",
        label="P2P",
        mark=mark,
        tag=phrase(f"nccl.tag.{tag}"),
        detail=detail,
        sentences=(phrase("nccl.explain.p2p"), *_ways(machine)),
        findings=(finding,) if finding else (),
        patch={"nccl.p2p": None} if answers.nccl.p2p == "off" else {} if len(found) < 2 else {"nccl.p2p": "off"},
    )


def _ways(machine: Machine) -> tuple[Words, ...]:
    """Return how the pairs of cards copy, one line for those that go the same way."""
    found = transport.groups(transport.pairs(machine))
    return tuple(
        phrase(f"nccl.way.{one.way}{'-' + one.reason if one.reason else ''}", pairs=names or "*", kind=one.kind or "?")
        for names, one in found[:6]
    )


def _infiniband(machine: Machine, answers: Profile) -> Option:
    """Return whether InfiniBand or RoCE is there; Space turns it off, and on again."""
    found = transport.rdma(machine)
    there = transport.has_rdma(machine)
    down = transport.infiniband_down(machine, answers)
    bare = transport.roce_unaddressed(machine, answers)
    finding = down or bare or transport.no_infiniband(machine, answers)
    tag = "turned-off" if answers.nccl.infiniband == "off" else "down" if down else "there" if there else "no-device"
    tag = "unknown" if tag == "no-device" and not machine.networks else tag
    mark: Mark = "catch" if down or bare else "good" if tag == "there" else "unknown" if tag == "unknown" else "info"
    return Option(
        value="infiniband",
        label="InfiniBand",
        mark=mark,
        tag=phrase(f"nccl.tag.{tag}"),
        detail=("IB" if _infiniband_link(machine, found) else "RoCE") if there else "",
        sentences=(phrase("nccl.explain.infiniband"),),
        findings=(finding,) if finding else (),
        patch={"nccl.infiniband": None if answers.nccl.infiniband == "off" else "off"},
    )


def _infiniband_link(machine: Machine, found: tuple[Network, ...]) -> bool:
    """Whether the RDMA devices speak InfiniBand, not Ethernet."""
    return any(one.kind == "infiniband" for one in found) or any(port.link_layer == "InfiniBand" for port in machine.infiniband)


def _gdr(machine: Machine, answers: Profile) -> Option:
    """Return whether network cards can reach GPU memory; Space turns it off, and on again."""
    finding = transport.gdr_unavailable(machine, answers)
    reason = finding.params.get("reason") if finding else None
    tag = "turned-off" if answers.nccl.gdr == "off" else "not-offered" if reason == "brand" else "module" if reason == "module" else ""
    tag = tag or ("proof-tells" if transport.has_rdma(machine) else "needs-ib")
    beside = [(port, transport.near(machine, port)) for port in machine.infiniband]
    return Option(
        value="gdr",
        label="GPUDirect",
        mark="unknown" if tag == "proof-tells" else "info",
        tag=phrase(f"nccl.tag.{tag}"),
        sentences=(
            phrase("nccl.explain.gdr"),
            *(phrase("nccl.way.near", device=port.device, gpus=" ".join(map(str, cards))) for port, cards in beside[:8] if cards),
        ),
        findings=(finding,) if finding else (),
        patch={"nccl.gdr": None if answers.nccl.gdr == "off" else "off"},
    )


def _debug(answers: Profile) -> Option:
    """Return how much NCCL logs; Space changes between warnings and everything."""
    level = answers.nccl.debug
    finding = next((one for one in rules.judge_nccl(Machine(), answers) if one.code == "nccl-debug-noisy"), None)
    return Option(
        value="debug",
        label=phrase("nccl.row.debug"),
        mark="catch" if finding else "good" if level else "info",
        tag=level or phrase("nccl.tag.silent"),
        sentences=(phrase("nccl.explain.debug"),),
        findings=(finding,) if finding else (),
        patch={"nccl.debug": "INFO" if level == "WARN" else "WARN" if level is None else None},
    )
