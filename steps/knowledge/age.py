"""How old what is known is; the day is given, so that nothing here looks at a clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date

from steps.catalog.overlay import FILES, Refused
from steps.catalog.tables import Table
from steps.model.finding import Finding

OLD_DAYS = 120
"""From here on it is said: a driver branch or a release of a framework comes every two months."""


def notices(tables: Iterable[Table], refused: Mapping[str, Refused], today: str) -> tuple[Finding, ...]:
    """Return what is to be said about the knowledge itself: files of the overlay that do not count, and tables that are old."""
    return (*(_refused(path, one) for path, one in refused.items()), *_old(tuple(tables), today))


def _refused(path: str, one: Refused) -> Finding:
    """Say that a file of the overlay does not count, and where it is wrong."""
    params = {"file": path, "key": one.key, "reason": one.reason, "place": f"{path}: {one.key}" if one.key else path}
    because = (f"{params['place']}: {one.reason}",)
    return Finding(code="overlay-refused", severity="warning", step="frameworks", subject=one.file, params=params, because=because)


def _old(tables: tuple[Table, ...], today: str) -> tuple[Finding, ...]:
    """Say which tables are old: those that an update reads anew, and those that only a newer version brings."""
    found = []
    for step, code, chosen in (
        ("driver", "knowledge-old", [one for one in tables if one.name not in FILES or one.name == "drivers.toml"]),
        ("frameworks", "knowledge-old-releases", [one for one in tables if one.name in FILES and one.name != "drivers.toml"]),
    ):
        ages = [(days, one) for one in chosen if one.checked and (days := _days(one.checked, today)) is not None and days > OLD_DAYS]
        if ages:
            days, oldest = max(ages, key=lambda pair: pair[0])
            found.append(
                Finding(
                    code=code,
                    severity="warning",
                    step="driver" if step == "driver" else "frameworks",
                    subject=", ".join(one.name.partition(".")[0] for _, one in ages[:4]),
                    params={"date": oldest.checked or "", "days": days, "count": len(ages)},
                    because=(", ".join(f"{one.name}: {one.checked}" for _, one in ages[:4]),),
                )
            )
    return tuple(found)


def _days(checked: str, today: str) -> int | None:
    """Return how many days lie between; `None` when one of them is no day."""
    try:
        return (date.fromisoformat(today) - date.fromisoformat(checked)).days
    except ValueError:
        return None
