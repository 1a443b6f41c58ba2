"""What runs inside an environment, as arguments of `python -c`: no file of ours has to be on the target."""

from __future__ import annotations

HAS_LINE = "import sys; sys.exit('%d.%d' % sys.version_info[:2] != sys.argv[1])"
HAS_ALL = r"""
import importlib.metadata as metadata, re, sys
for wanted in sys.argv[1:]:
    name, extras, operator, version = re.fullmatch(r"([\w.-]+)(?:\[([\w,-]+)\])?(===|==|[<>!~]=?)?(.*)", wanted).groups()
    try:
        found = metadata.distribution(name)
        for extra in (extras or "").split(","):
            for needed in found.requires or () if extra else ():
                what, _, marker = needed.partition(";")
                if marker.strip().replace('"', "'") == "extra == '" + extra + "'":
                    metadata.distribution(re.match(r"[\w.-]+", what)[0])
    except metadata.PackageNotFoundError:
        sys.exit(1)
    # `===` is this build and no other; `==` leaves the local part ("+cpu") open, as installers do.
    if operator == "===" and found.version != version:
        sys.exit(1)
    if operator == "==" and found.version != version and not found.version.startswith(version + "+"):
        sys.exit(1)
    if not all(file.locate().exists() for file in found.files or () if not file.name.endswith(".pyc")):
        sys.exit(1)
"""
# One line, because plans show it.
FREEZE = (
    "import sys, importlib.metadata as m; open(sys.argv[1], 'w').writelines(sorted("
    "d.metadata['Name'].lower() + '==' + d.version + '\\n' for d in m.distributions() if d.metadata['Name'] not in ('pip', 'setuptools')))"
)
# What an environment held before us; the first try's word stands. Nothing in it: it is new, and undo removes it whole.
REMEMBER = (
    "import os, sys, importlib.metadata as m; os.path.exists(sys.argv[1]) or open(sys.argv[1], 'w').writelines("
    "d.metadata['Name'] + '==' + d.version + '\\n' for d in m.distributions() if d.metadata['Name'] not in ('pip', 'setuptools'))"
)
PUT_BACK = "import os, subprocess, sys; sys.exit(subprocess.call(sys.argv[2:]) if os.path.getsize(sys.argv[1]) else 0)"

# Before anything is made: an ordinary folder of the person's is not turned into an environment.
IS_FREE = (
    "import os, sys; p = sys.argv[1]; sys.exit(os.path.isdir(p) and bool(os.listdir(p)) and not os.path.exists(p + '/pyvenv.cfg')"
    " and p + ' holds files and is no Python environment. Nothing was changed in it: choose another folder.')"
)
