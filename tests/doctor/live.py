"""A recorded machine that answers as a real one does: it can be asked anything, and lists nothing of what it would say."""

from __future__ import annotations

import json
import re
import shlex
from functools import cached_property
from pathlib import Path

import msgspec

from steps.detect.packages import STATUS
from steps.detect.probes import Probes
from steps.detect.smi import Smi, smi
from steps.doctor.diagnosis import Verdict
from steps.doctor.evidence import Evidence, Log
from steps.doctor.judge import judge
from steps.host.base import Result
from steps.host.captured import Capture, CapturedHost, Recorded, parse_capture, pasted
from steps.host.local import NVML

_WORDS = {"i": "install", "h": "hold", "r": "deinstall", "p": "purge", "u": "unknown"}
_STATES = {"i": "installed", "c": "config-files", "U": "unpacked", "F": "half-configured", "H": "half-installed", "W": "triggers-awaited"}
_ROW = re.compile(
    r"^(?P<state>[uihrp][nicUFHWt])R? +(?P<name>[^\s:]+)(?::(?P<arch>\w+))?(?: +(?P<version>\S+))?(?: +(?P<own>\w+))?", re.MULTILINE
)
_DONE_BY_A_PERSON = ("modprobe", "apt", "yum", "nvidia-container-cli", "ldd", "docker")
"""Programs that change something, or whose output depends on what a person gives them: nobody runs them to look."""


class AnsweringHost(CapturedHost):
    """Holds the same facts as the capture, where a running machine has them."""

    rehearsal = False

    def __init__(self, capture: Capture) -> None:
        super().__init__(capture, "capture.json")
        self.capture = capture
        self._files.update({path: text for path, text in self._kept().items() if path not in self._files})
        for path in self._files:
            self._know(path)
        for program, folder in (
            ("rpm", "/var/lib/rpm"),
            ("yum", "/var/lib/rpm"),
            ("pacman", "/var/lib/pacman"),
            ("dkms", "/var/lib/dkms/nvidia"),
        ):
            if self._recorded(program):
                self._know(folder)
                self._children.setdefault(folder, set())

    def recorded(self) -> tuple[tuple[str, ...], ...]:
        """Return nothing, as a real machine."""
        return ()

    def _recorded(self, program: str) -> dict[tuple[str, ...], Recorded]:
        return {argv: found for argv, found in self._commands.items() if argv[:1] == (program,)}

    def _text(self, program: str) -> str:
        return "".join(f"{one.stdout}{one.stderr}" for one in self._recorded(program).values())

    def _kept(self) -> dict[str, str]:
        """Return the files behind what programs were recorded to say."""
        kept = {"/proc/modules": self._text("lsmod"), **{path: "file" for path in self._text("ls").split() if path.startswith("/usr/bin/")}}
        rows = list(_ROW.finditer(self._text("dpkg")))
        kept[STATUS] = "\n\n".join(
            f"Package: {row['name']}\nStatus: {_WORDS[row['state'][0]]} ok {_STATES.get(row['state'][1], 'not-installed')}\n"
            f"Architecture: {row['arch'] or row['own'] or 'amd64'}\nVersion: {row['version'] or '1'}"
            for row in rows
        )
        for argv in self._recorded("grep"):
            for file, line in re.findall(r"^(/etc/modprobe\.d/\S+?):(.*)$", self._commands[argv].stdout, re.MULTILINE):
                kept[file] = f"{kept.get(file, '')}{line}\n"
        for argv in self._recorded("mokutil"):
            kept |= {argv[-1]: "key"} if "--test-key" in argv else {}
        return {path: text for path, text in kept.items() if text}

    @cached_property
    def smi(self) -> Smi:
        """What nvidia-smi was recorded to say, in all its forms together."""
        return smi(Probes(CapturedHost(self.capture, "capture.json")))

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0) -> Result:
        """Return what the machine would print; what nobody ever saw there is not installed."""
        del timeout
        found = self._in_other_words(argv) or self._commands.get(argv)
        if argv == NVML and found is None:
            return self._nvml()
        if found is None:
            return Result(status=127)
        return Result(stdout=found.stdout, stderr=found.stderr, status=0 if found.status is None else found.status)

    def _in_other_words(self, argv: tuple[str, ...]) -> Recorded | None:
        recorded = self._recorded(argv[0])
        if argv[0] == "nvidia-smi" and argv[1:] == ("-q",):
            whole = "".join(one.stdout for said, one in recorded.items() if "-q" in said)
            broken = next((one for one in recorded.values() if self.smi.trouble is not None), None)
            if broken is not None:
                return msgspec.structs.replace(broken, status=broken.status or 9)
            return Recorded(stdout=whole, status=0) if whole else None
        if argv == ("rpm", "-qa"):
            described = [
                (said[2], re.search(r"^Version *: *(\S+)", one.stdout, re.MULTILINE)) for said, one in self._recorded("yum").items()
            ]
            lines = "".join(f"{name}-{told[1]}-1.x86_64\n" for name, told in described if told)
            return Recorded(stdout=self._text("rpm") + lines, status=0)
        if argv[0] == "lspci":
            return next((one for said, one in recorded.items() if not any(part.startswith(("-t", "-nnt")) for part in said)), None)
        if argv[0] == "journalctl" and "-u" in argv:
            return next((one for said, one in recorded.items() if said[:3] == argv[:3]), None)
        if argv == ("modinfo", "nvidia"):
            fields = {said[2]: one.stdout for said, one in recorded.items() if said[1] == "-F"}
            return Recorded(stdout="".join(f"{name}: {text.strip()}\n" for name, text in fields.items()), status=0) if fields else None
        return None

    def _nvml(self) -> Result:
        if self.smi.trouble is not None or not self.smi.gpus:
            return Result(stdout='{"error": 12}', status=0)
        cuda = [int(part) for part in (self.smi.cuda_version or "0.0").split(".")]
        told = {
            "driver": self.smi.driver_version,
            "cuda": cuda[0] * 1000 + cuda[1] * 10 or None,
            "gpus": [msgspec.to_builtins(gpu) for gpu in self.smi.gpus],
        }
        return Result(stdout=json.dumps(told), status=0)

    def handed(self) -> list[Log]:
        """Return what a person would hand over beside it: pasted logs, and the sessions of what is no probe."""
        sessions = {
            f"session {argv[0]}": f"$ {shlex.join(argv)}\n{one.stdout}{one.stderr}"
            for argv, one in self._commands.items()
            if argv[0] in _DONE_BY_A_PERSON and argv not in self.typed
        }
        return [(name, (text.encode(),)) for name, text in {**pasted(self), **sessions}.items()]


def verdict(path: Path) -> Verdict:
    """Return the verdict on a capture that is asked as a real machine is."""
    document = json.loads(path.read_text(encoding="utf-8"))
    document["about"] = {}
    host = AnsweringHost(parse_capture(json.dumps(document).encode()))
    seen = Evidence(host, host.handed())
    try:
        return judge(seen)
    finally:
        seen.close()
