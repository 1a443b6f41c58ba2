"""A run that waits for an answer that nobody gives, or ended because nobody could."""

from __future__ import annotations

import re

from steps.doctor.events.outcomes import Proceeded, SetUp
from steps.doctor.events.runs import Conffile, Dialog, LineQuestion, NoTerminal, PipRan
from steps.doctor.evidence import Evidence
from steps.doctor.facts.processes import running
from steps.doctor.rules.base import CERTAIN, LIKELY, POSSIBLE, STRONG, Answer, found, out, rule
from steps.doctor.told import Fact, fact

DIALOGS = r"whiptail|dialog|needrestart|debconf-communicate|/usr/share/debconf/frontend|frontend|mokutil"
_OWN_TITLE = re.compile(r"(?:whiptail|dialog)\b.*(?:Package configuration|--title\W+Configuring )")
"""A dialog program whose arguments say that debconf started it."""
BUILDERS = r"cc1|gcc|make|dkms|ld|clang"


def half_configured(seen: Evidence) -> tuple[Fact, ...]:
    """Return the packages that are unpacked or half configured, the one that lets people log in first; a list may lack their versions."""
    rows = [Fact(place=row.place, value=row.name) for row in seen.packages.rows if row.half]
    for argv in seen.host.forms(lambda argv: argv[0] == "dpkg"):
        if argv[:2] == ("dpkg", "-l") and not rows:
            lines = re.finditer(r"^[ih][UFHWt][R ]? +(?P<name>[^\s:]+).*$", seen.host.run(argv).stdout, re.MULTILINE)
            rows = [fact(line["name"], " ".join(argv), " ".join(line[0].split())) for line in lines]
        if argv in (("dpkg", "--audit"), ("dpkg", "-C")):
            lines = re.finditer(r"^ (?P<name>[a-z0-9][\w.+:-]*) {1,}\S.*$", seen.host.run(argv).stdout, re.MULTILINE)
            rows += [fact(line["name"], " ".join(argv), line[0].strip()) for line in lines]
    return tuple(sorted(rows, key=lambda row: row.value != "openssh-server"))


@rule("package-dialog-waiting")
def dialog_waiting(seen: Evidence) -> Answer:
    """A question on the whole screen is shown, or its program runs below a package manager."""
    shown = max(seen.all(Dialog), key=lambda event: event.program == "secure-boot", default=None)
    process = running(seen.processes, DIALOGS)
    builds = running(seen.processes, BUILDERS)
    manager = running(seen.processes, r"apt|apt-get|dpkg|aptitude|unattended-upgrade")
    titled = next((one for one in seen.processes or () if _OWN_TITLE.search(one.value) and "grep" not in one.value), None)
    process = titled or process
    if shown is None and titled is None and (process is None or manager is None):
        asked = _asked_by_lines(seen)
        return found(LIKELY + 0.1, asked, seen.first(NoTerminal), program="debconf") if asked is not None else None
    if builds is not None:
        return out(builds)
    what = shown.program if shown else "secure-boot" if titled and "Secure Boot" in titled.value else "debconf"
    sure = CERTAIN if process and (shown or manager) else STRONG
    return found(sure, shown, process, manager, program={"secure-boot": "Secure Boot"}.get(what, what))


def _asked_by_lines(seen: Evidence) -> LineQuestion | None:
    """Return a question by lines with which a log ends, behind debconf's own words; with a package that is half configured it is over."""
    debconf = {one.place.source for one in seen.all(NoTerminal)}
    asked = next((one for one in seen.all(LineQuestion)[::-1] if one.place.source in debconf), None)
    if asked is None or half_configured(seen):
        return None
    later = (*seen.all(SetUp), *seen.all(PipRan), *seen.all(Proceeded))
    return None if any(one.place.source == asked.place.source and one.place.order > asked.place.order for one in later) else asked


@rule("conffile-question-unanswered")
def conffile(seen: Evidence) -> Answer:
    """Dpkg's question had no answer, or a package is half configured after its questions had no terminal."""
    asked = max(seen.all(Conffile), key=lambda event: event.ended, default=None)
    half = half_configured(seen)
    mute = seen.first(NoTerminal)
    package = (asked.package if asked and asked.package else None) or (half[0].value if half else "?")
    ssh = "ssh" if any("openssh-server" in name for name in (package, *(row.value for row in half))) else ""
    if asked is not None:
        if running(seen.processes, r"apt|apt-get|dpkg") and not asked.ended:
            return found(POSSIBLE, asked, package=package, variant=ssh)
        return found(CERTAIN if asked.ended else LIKELY, asked, *half[:1], package=package, variant=ssh)
    if half and mute is not None:
        return found(STRONG, half[0], mute, package=package, variant=ssh)
    return None
