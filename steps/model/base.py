"""The frozen record that every value is, and the words that values carry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from steps.model.loading import without

with without("typing_extensions"):
    # msgspec takes a few names from there where it can, and from `typing` where it cannot; `inspect` and the like come along with
    # them, which is a tenth of what a verb may cost.
    import msgspec

T = TypeVar("T")

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Callable[[T], T]:
        """Stand in for the typing decorator, which Python 3.10 does not have."""
        return lambda decorated: decorated


class _KeywordsOnly(msgspec.StructMeta):
    """Makes the fields of every record keyword-only: msgspec does not hand that option down to subclasses."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> Any:
        return super().__new__(mcls, name, bases, namespace, **{"kw_only": True, **options})


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Record(msgspec.Struct, metaclass=_KeywordsOnly, frozen=True, forbid_unknown_fields=True):
    """A frozen value: compared by content, written with keywords only, decoded strictly."""


Param = str | int | float
"""What a phrase can be filled with: names, counts and measures, never prose."""


class Phrase(Record):
    """A sentence by its key in `assets/i18n`, with what fills its braces; worded only when drawn."""

    key: str
    params: Mapping[str, Param] = {}


Words = Phrase | str
"""A phrase, or text that is never translated: a name, a version, a path, a command."""


def phrase(key: str, /, **params: Param) -> Phrase:
    """Return the phrase `key` filled with `params`."""
    return Phrase(key=key, params=params)
