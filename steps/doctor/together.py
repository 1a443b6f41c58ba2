"""Cards of one machine that no one driver serves together, or that only some drivers do."""

from __future__ import annotations

from steps.catalog import devices as catalog
from steps.catalog.stack import Architecture, architecture_of
from steps.doctor import numbers
from steps.doctor.events.kernel import NeedsOpen, NoGsp
from steps.doctor.evidence import Evidence
from steps.doctor.facts.cards import Card, of_name
from steps.doctor.told import Place


def all_cards(seen: Evidence) -> tuple[Card, ...]:
    """Return the cards of the bus, and where it was seen in part only, or not at all, those that nvidia-smi or the module names besides."""
    known = {card.name for card in seen.cards.cards}
    listed = [of_name(gpu.name, Place(source="nvidia-smi", text=gpu.name)) for gpu in seen.smi.gpus if gpu.name]
    said: tuple[NoGsp | NeedsOpen, ...] = (*seen.all(NoGsp), *seen.all(NeedsOpen))
    for event in said:
        row = catalog.gpu(event.pci_id) if event.pci_id else None
        if row is not None:
            listed.append(Card(place=event.place, address=event.address, pci_id=event.pci_id, name=row.name, row=row))
    return (*seen.cards.cards, *(card for card in listed if card.name not in known and (not card.row or card.row.name not in known)))


def ended(card: Card, version: str) -> bool:
    """Return whether a card's last branch lies before a version."""
    last = card.row.last_driver_branch if card.row else None
    return last is not None and numbers.parts(last)[:1] < numbers.parts(version)[:1]


def served(seen: Evidence, version: str) -> Card | None:
    """Return a card that a driver of this version drives, or `None` where none is known to be one.

    One that nvidia-smi lists is driven, whatever it is.
    """
    listed = {gpu.name for gpu in seen.smi.gpus}
    return next((card for card in all_cards(seen) if (card.row or card.name in listed) and not ended(card, version)), None)


def newer_only(seen: Evidence, branch: str) -> Card | None:
    """Return a card that no driver as old as a branch drives, or `None`."""
    least = numbers.parts(branch)[:1]
    return next(
        (
            card
            for card in all_cards(seen)
            if (row := _architecture(card)) and row.first_branch and numbers.parts(row.first_branch)[:1] > least
        ),
        None,
    )


def only(seen: Evidence, kind: str) -> Card | None:
    """Return a card that asks for one kind of modules: `required` for the open ones, `no` for the closed ones; `None` without one."""
    return next((card for card in all_cards(seen) if card.row and card.row.open_modules == kind), None)


def _architecture(card: Card) -> Architecture | None:
    return architecture_of(card.row.architecture, card.row.compute_capability, card.row.chip) if card.row else None
