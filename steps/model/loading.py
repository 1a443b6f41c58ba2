"""Loading a module without what it would bring along and can do without."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def without(*names: str) -> Iterator[None]:
    """Let what is loaded meanwhile not find these modules unless they are there already; whoever asks later finds them as always."""
    modules: dict[str, Any] = sys.modules
    hidden = [name for name in names if name not in modules]
    modules.update(dict.fromkeys(hidden))
    try:
        yield
    finally:
        for name in hidden:
            del modules[name]
