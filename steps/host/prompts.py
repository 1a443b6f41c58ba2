"""What shells print before a command that was typed: prompts of many kinds, a trace, and the numbers of a history."""

from __future__ import annotations

import re

FACTS = (
    "lspci", "lsmod", "modinfo", "modprobe", "nvidia-smi", "nvidia-smi.exe", "keyctl", "mokutil", "prime-select", "df", "lsblk", "ldconfig",
    "which", "nvcc", "getenforce", "apt-mark", "rocminfo", "hl-smi", "nvidia-ctk", "uname", "systemd-detect-virt", "rpm", "dkms",
    "sensors", "ps", "groups", "id", "env",
)  # fmt: skip
"""Programs whose output is a fact under the very words that were typed."""
RUNNERS = (
    "apt", "apt-get", "aptitude", "dnf", "yum", "zypper", "pacman", "pip", "pip3", "uv", "conda", "mamba", "docker", "podman", "nerdctl",
    "kubectl", "oc", "crictl", "singularity", "apptainer",
    "torchrun", "mpirun", "modprobe", "prime-select", "dkms", "bash", "sh", "export", "make",
)  # fmt: skip
"""Programs that change a machine or start work on it."""
_OTHERS = (
    "sudo", "cat", "dmesg", "journalctl", "dpkg", "dpkg-query", "apt-cache", "systemctl", "ulimit", "printenv", "grep", "python", "python3",
    "ls", "find", "cd", "echo", "egrep", "reboot",
)  # fmt: skip
_KNOWN = "|".join(sorted({re.escape(name) for name in (*FACTS, *RUNNERS, *_OTHERS)}))
FOLLOWS = rf"(?=(?:[\w./-]*/)?(?:{_KNOWN})(?:[ \t]|$))"
"""A mark that ordinary lines begin with as well is a prompt only where a program that people use here follows, and its words."""
_MARK = r"[$#%❯➜]"
PROMPT = (
    r"(?:\[?\d\d:\d\d(?::\d\d)?\]?[ ])?(?:\([\w.+-]+\)[ ]?){0,2}(?:"
    rf"(?:[╭╰┌└][─-]{{0,3}})?[(\[]?[\w.-]+@(?P<host>[\w.-]+)[^$#%>\n]{{0,60}}[ ]?{_MARK}[ ]?|"
    r"[\w.-]+@[\w.-]+[ :]?[~/][^\s$#%>]{0,60}(?:[ ]\[\d+\])?>[ ]|"
    r"[\w.-]+:[~/][^\s$#%>]{0,60}(?:[ ][\w.-]{1,32})?[ ]?[#$%>][ ]|"
    r"[\w.-]{1,40}[ ][~/][^\s$#%>]{0,60}[ ][$#%>❯][ ]|"
    r"-?(?:ba|z|da|k|a)?sh(?:-\d[\d.]*)?[$#%][ ]|"
    r"[╰└][─╼-]{0,4}[ ]?[$#%>❯➜]{1,2}[ ]?|"
    r"➜[ ]{2,3}[~/\w][^\s]{0,60}(?:[ ]git:\([^)\n]{0,80}\))?(?:[ ]✗)?[ ](?![ ])|"
    r"[~/][^\s$#%❯➜]{0,60}(?:[ ][^\n$#%>❯➜]{1,40})?[ ]?(?:[❯➜]|[$%](?=[ ]))[ ]?|"
    r"(?:PS[ ])?[A-Z]:\\[^>\n]{0,80}>[ ]?|"
    r"[~/][^\s$#%]{0,60}[ ]?[$#%❯➜][ ]?|[$#%❯➜][ ]?|"
    rf"(?:[~][^\s$#%>]{{0,60}}[ ]?>|>|\+{{1,4}}|[A-Za-z][\w.-]{{0,30}}%)[ ]{FOLLOWS})"
)
"""To be tried where a line begins; `host` is the machine's name where the prompt tells it."""
HISTORY = r"\d{1,5}\*?[ ]{2}(?:\d{4}-\d\d-\d\d[ ]\d\d:\d\d:\d\d[ ]{1,2})?"
"""What `history` prints before a command, behind blanks."""
