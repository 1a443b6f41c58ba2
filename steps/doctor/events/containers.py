"""What container engines and what runs in them say of GPUs."""

from __future__ import annotations
