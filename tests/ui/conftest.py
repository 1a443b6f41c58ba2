"""What all tests of screens share: a pilot that waits for the event loop and not for the clock."""

from __future__ import annotations

import asyncio
import time

import pytest
import textual.app
import textual.pilot
from textual._context import active_app

_GRACE = 0.02
"""Seconds that a thread at work is given; Textual's own wait is never shorter."""


def _threads_at_work() -> bool:
    app = active_app.get(None)
    return app is not None and any(not worker.is_finished for worker in app.workers)


async def settled(min_sleep: float = 0.0, max_sleep: float = 1.0) -> None:
    """Return once nothing in the event loop is ready to go on, after `max_sleep` seconds at most.

    Textual's own wait sleeps 20 ms, three times a key, and takes a process that gets no processor for one that has nothing to do.
    """
    loop, begun, quiet = asyncio.get_running_loop(), time.monotonic(), 0
    while quiet < 4 and (gone := time.monotonic() - begun) < max_sleep:
        at_work = gone < _GRACE and _threads_at_work()
        await asyncio.sleep(0.001 if at_work else 0)
        quiet = 0 if at_work or loop._ready else quiet + 1  # type: ignore[attr-defined]  # asyncio's own list; nothing public tells


@pytest.fixture(autouse=True)
def _pilot_waits_for_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (textual.app, textual.pilot):
        monkeypatch.setattr(module, "wait_for_idle", settled)
