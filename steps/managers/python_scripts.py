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
# One line each from here on, because plans show them.
_LISTED = "d.metadata['Name']{lower} + '==' + d.version + '\\n' for d in m.distributions() if d.metadata['Name'] not in {but}"
_VERSIONS = _LISTED.format(lower=".lower()", but="('pip',)")
_HELD = _LISTED.format(lower="", but="('pip', 'setuptools', 'wheel')")
# Of pip alone it is certain that nothing in the environment needs it; PyTorch does need setuptools.
FREEZE = f"import sys, importlib.metadata as m; open(sys.argv[1], 'w').writelines(sorted({_VERSIONS}))"
# What an environment held before us; the first try's word stands. Nothing in it: it is new, and undo removes it whole.
REMEMBER = f"import os, sys, importlib.metadata as m; os.path.exists(sys.argv[1]) or open(sys.argv[1], 'w').writelines({_HELD})"
# What pip reports of the files that it would take, as a list with their hashes: pip 23.0 says that of a file of this machine in an
# older word ("sha256=…"), and where it says none it is worked out. pip wants all or none: where one is not to be had, those that
# are known stand as remarks, and that is said.
FROM_REPORT = (
    "import hashlib, json, sys, urllib.parse as u, urllib.request as r; said, lock, *options = sys.argv[1:]; "
    "found = json.load(open(said))['install']; "
    "name = lambda one: one['metadata']['name'].lower() + '==' + one['metadata']['version']; "
    "local = lambda url: hashlib.sha256(open(r.url2pathname(u.urlsplit(url).path), 'rb').read()).hexdigest() "
    "if url.startswith('file:') and not url.endswith('/') else None; "
    "old = lambda info: info.get('hash', '').partition('sha256=')[2]; archive = lambda at: at.get('archive_info', {}); "
    "told = lambda at: archive(at).get('hashes', {}).get('sha256') or old(archive(at)) or ('archive_info' in at and local(at['url'])); "
    "hashes = {name(one): told(one['download_info']) for one in found}; of = lambda one: hashes[name(one)]; "
    "without = [one for one in hashes if not hashes[one]]; whole = not without; "
    "without and print('Without a hash, so the lock is not complete: ' + ' '.join(without)); "
    "lines = [a + ' ' + b for a, b in zip(options[::2], options[1::2])]; "
    "lines += ['# not complete, without a hash: ' + ' '.join(without)] if without else []; "
    "lines += sorted(name(one) + ((' ' if whole else '  # ') + '--hash=sha256:' + of(one) if of(one) else '') for one in found); "
    "open(lock, 'w').write('\\n'.join(lines) + '\\n')"
)
# Where the files come from stands before them, as the plan says it: uv's own lines would show passwords of the environment.
# Wheels of a folder stand on no page that says their hashes: they are worked out from the files.
ADD_HASHES = (
    "import glob, hashlib, os, re, sys; versions, lock, *options = sys.argv[1:]; pairs = list(zip(options[::2], options[1::2])); "
    "folders = [b.replace('file://', '') for a, b in pairs if a == '--find-links' and b.startswith(('/', 'file://'))]; "
    "text = open(lock if os.path.exists(lock) else versions).read(); "
    "like = lambda v: re.sub('[-_.]+', '[-_.]', v[1]) + '-' + glob.escape(v[2]) + '-*.whl'; "
    "files = lambda v: sorted(f for d in folders for f in glob.glob(os.path.join(d, like(v)))); "
    "sha = lambda f: hashlib.sha256(open(f, 'rb').read()).hexdigest(); "
    "put = lambda v: ' \\\\\\n    '.join([v[0], *('--hash=sha256:' + sha(f) for f in files(v))]); "
    "head = ''.join(a + ' ' + b + '\\n' for a, b in pairs); "
    "open(lock, 'w').write(head + re.sub(r'^([\\w.-]+)==(\\S+)$', put, text, flags=re.M))"
)
# Exactly what a lock lists is there: as many distributions, each in its version.
IS_LOCKED = (
    "import re, sys, importlib.metadata as m; norm = lambda n: re.sub('[-_.]+', '-', n).lower(); "
    "want = {norm(n): v for n, v in re.findall(r'^([\\w.-]+)==([^\\s;\\\\]+)', open(sys.argv[1]).read(), re.M)}; "
    "have = {norm(d.metadata['Name']): d.version for d in m.distributions()}; "
    "sys.exit({n: v for n, v in have.items() if n in want or n not in ('pip', 'setuptools', 'wheel')} != want)"
)
PUT_BACK = "import os, subprocess, sys; sys.exit(subprocess.call(sys.argv[2:]) if os.path.getsize(sys.argv[1]) else 0)"
# Before anything is made: an ordinary folder of the person's is not turned into an environment, and one of another Python is not
# overwritten. Its line is read and not asked: a broken environment has no Python that could answer.
IS_FREE = (
    "import glob, os, pathlib, re, sys; p, line, most = sys.argv[1:]; at = lambda n: os.path.join(p, n); cfg = at('pyvenv.cfg'); "
    "marks = any(os.path.exists(at(n)) for n in ('pyvenv.cfg', 'conda-meta', 'pixi.toml')); "
    "text = open(cfg, errors='replace').read() if os.path.isfile(cfg) else ''; "
    "text += ''.join('\\nversion = ' + f.rpartition('/python-')[2] for f in glob.glob(at('conda-meta/python-3*.json'))); "
    "has = re.search(r'^version(?:_info)?\\s*=\\s*(\\d+\\.\\d+)', text, re.M); "
    "up = (pathlib.Path(p), *pathlib.Path(p).parents); near = next(a for a in up if os.path.exists(a)); "
    "lost = next((a for a in up if os.path.islink(a) and not os.path.exists(a)), None); "
    "disk = os.statvfs(near); free = disk.f_bavail * disk.f_frsize; "
    "sys.exit((os.path.isfile(p) and p + ' is a file. Nothing was changed: choose another folder.')"
    " or (not marks and os.path.isdir(p) and bool(os.listdir(p)) and p + ' holds files and is no Python environment."
    " Nothing was changed in it: choose another folder.')"
    " or (has and has[1] != line and p + ' is an environment of Python ' + has[1] + ', not ' + line + '."
    " Nothing was changed in it: choose another environment.name.')"
    " or (lost and str(lost) + ' is a link that leads nowhere. Nothing was changed: choose another folder with environment.path.')"
    " or (disk.f_flag & os.ST_RDONLY and str(near) + ' lies on a disk that is mounted read-only. Nothing was changed:"
    " choose another folder with environment.path.')"
    " or (disk.f_flag & os.ST_NOEXEC and str(near) + ' lies on a disk that is mounted with noexec: no library could be loaded from it."
    " Nothing was changed: choose another folder with environment.path.')"
    " or (not os.access(near, os.W_OK | os.X_OK) and str(near) + ' is not yours to write. Nothing was changed:"
    " choose another folder with environment.path.')"
    " or (int(most) > free and '%s has %.1f GB free, and %.1f GB are needed. Nothing was changed: free some space, or choose"
    " another folder with environment.path.' % (near, free / 1e9, int(most) / 1e9)) or 0)"
)
