"""The enrolment of the key that signs modules built here, and its way back."""

from __future__ import annotations

from steps.model.action import KEY, Run, Unqueue
from steps.model.base import Words, phrase


def enrolment(certificate: str, queued: tuple[str, ...] | None, title: Words, why: Words = "", needs: tuple[str, ...] = ()) -> Run:
    """Return what asks the firmware to trust a key; `queued` are the keys that wait already, `None` where that is not known.

    Undo takes the request back where it is the only one: mokutil can only let go of all of them. Else the key stays, as does one
    that was confirmed at the console.
    """
    return Run(
        id=KEY,
        title=title,
        why=why,
        lane="packages",
        argv=("mokutil", "--import", certificate),
        needs=needs,
        undo=(Unqueue(certificate=certificate),) if queued == () else (),
        stays=phrase("repair.undo.key", path=certificate),
        interactive=True,
        seconds=30,
    )
