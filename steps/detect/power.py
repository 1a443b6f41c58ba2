"""What holds a machine back on purpose: power limits, the firmware's profile, and the fans that keep it cool."""

from __future__ import annotations

import re

from steps.detect import pci
from steps.detect.probes import Probes
from steps.model.hardware import Fan, Power, PowerLimit

_PACKAGES = "/sys/class/powercap"
_PROFILE = "/sys/firmware/acpi/platform_profile"
_SENSORS = "/sys/class/hwmon"
_MOST_FANS = 32
_MOST_WATTS = 100_000
_MOST_TURNS = 100_000


def power(host: Probes) -> Power:
    """Return what the kernel shows of the board; the limits of the cards stand with the cards."""
    return Power(profile=host.line(_PROFILE), packages=_packages(host), fans=_fans(host))


def _packages(host: Probes) -> tuple[PowerLimit, ...]:
    """Return the lasting limit of each processor package (RAPL); empty where the kernel shows none, as on AMD."""
    found: list[PowerLimit] = []
    for name in host.listdir(_PACKAGES) or ():
        at = f"{_PACKAGES}/{name}"
        if not re.fullmatch(r"intel-rapl:\d{1,3}", name) or not (host.line(f"{at}/name") or "").startswith("package"):
            continue
        lasting = next((n for n in range(4) if host.line(f"{at}/constraint_{n}_name") == "long_term"), None)
        limit = None if lasting is None else micro(host.number(f"{at}/constraint_{lasting}_power_limit_uw"))
        if limit is not None:
            found.append(PowerLimit(watts=limit, most=micro(host.number(f"{at}/constraint_{lasting}_max_power_uw"))))
    return tuple(found)


def of_amd_card(host: Probes, address: str) -> tuple[PowerLimit | None, int | None]:
    """Return the limit of a card that amdgpu drives, and the speed of its fan in per cent; `None` for what it does not show."""
    folders = host.glob(f"{pci.DEVICES}/{address}/hwmon/hwmon*")
    at = folders[0] if folders else ""
    watts = micro(host.number(f"{at}/power1_cap")) if at else None
    if watts is None:
        return None, None
    limit = PowerLimit(watts=watts, default=micro(host.number(f"{at}/power1_cap_default")), most=micro(host.number(f"{at}/power1_cap_max")))
    now, full = host.number(f"{at}/pwm1"), host.number(f"{at}/pwm1_max")
    return limit, round(100 * now / full) if now is not None and full and 0 <= now <= full else None


def micro(number: int | None) -> float | None:
    """Return watts of the microwatts that the kernel counts in; `None` for none and for what no machine draws."""
    return watts(None if number is None else number / 1e6)


def watts(number: float | None) -> float | None:
    """Return watts as they are; `None` for 0, which stands for "no limit known", and for what no machine draws."""
    return number if number is not None and 0 < number < _MOST_WATTS else None


def _fans(host: Probes) -> tuple[Fan, ...]:
    """Return the fans of board and processor with their turns a minute; a header that nothing is plugged into shows 0."""
    found: list[Fan] = []
    for sensor in host.listdir(_SENSORS) or ():
        at = f"{_SENSORS}/{sensor}"
        for name in host.listdir(at) or ():
            input_ = re.fullmatch(r"(fan\d{1,2})_input", name)
            turns = host.number(f"{at}/{name}") if input_ else None
            if input_ and turns is not None and 0 <= turns < _MOST_TURNS and len(found) < _MOST_FANS:
                label = host.line(f"{at}/{input_[1]}_label")
                found.append(Fan(name=label or input_[1], chip=host.line(f"{at}/name"), rpm=turns))
    return tuple(found)
