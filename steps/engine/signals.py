"""Hearing a signal outside of its handler: a handler may interrupt the very lock that it would wait for."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable


def hear(number: signal.Signals, act: Callable[[], None]) -> None:
    """Let `act` be called in a thread of its own whenever the signal comes; to be called once, in the main thread."""
    ear, mouth = os.pipe()
    os.set_blocking(mouth, False)
    signal.set_wakeup_fd(mouth, warn_on_full_buffer=False)
    # The number is written to the pipe before any code of ours runs; the handler is there so that it does not end us.
    signal.signal(number, lambda *_: None)

    def listen() -> None:
        while heard := os.read(ear, 64):
            if number in heard:
                act()

    threading.Thread(target=listen, name="signals", daemon=True).start()
