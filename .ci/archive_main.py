"""The first program of bringup.pyz: unpacks what fits this machine, once, and hands over to it.

It is read by any Python from 3.6 on, so that an old one can say that it is old; `.ci/assemble.py` fills in BUILD and TAGS.
"""

import os
import sys

BUILD = "@BUILD@"
TAGS = "@TAGS@".split()


def refuse(sentence, remedy):
    """Say what is missing and what helps, and end as a refused preflight check does."""
    sys.stderr.write("bringup: %s\nbringup: %s\n" % (sentence, remedy))
    sys.exit(3)


def native_tag():
    """Return the name of the compiled part that fits this interpreter and machine; ends the program when there is none."""
    version = "%d.%d" % sys.version_info[:2]
    if sys.version_info < (3, 10):
        refuse(
            "this is Python %s; bringup.pyz needs CPython 3.10 or newer" % version,
            "start it with a newer one, for instance: python3.11 -I %s" % sys.argv[0],
        )
    if sys.implementation.name != "cpython" or not hasattr(sys, "abiflags") or "t" in sys.abiflags:
        refuse("this Python (%s) is not a standard CPython" % interpreter(), "start it with the distribution's python3")
    machine = os.uname().machine
    try:
        libc = os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError):
        libc = None
    if not libc:
        refuse(
            "bringup.pyz carries programs for glibc, and this system has another C library (musl?)",
            "clone the repository here and run ./bringup",
        )
    tag = "cp%d%d-%s" % (sys.version_info[0], sys.version_info[1], machine)
    if tag not in TAGS:
        refuse(
            "bringup.pyz carries nothing for Python %s on %s" % (version, machine),
            "it carries: %s; otherwise clone the repository here and run ./bringup" % ", ".join(TAGS),
        )
    return tag


def rooms():
    """Yield the folders that may hold the unpacked tree, the best first."""
    name = "bringup-%d" % os.getuid()
    if os.environ.get("BRINGUP_CACHE"):
        yield os.environ["BRINGUP_CACHE"]
    elif os.environ.get("SUDO_UID") and os.getuid() == 0:
        yield "/var/cache/bringup"  # nothing of root's is left in the caller's home
    else:
        yield os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache"), "bringup")
    yield os.path.join("/var/tmp", name)  # noqa: S108 - owned by us or not used
    yield os.path.join(os.environ.get("TMPDIR") or "/tmp", name)  # noqa: S108 - the same


def ours(folder):
    """Whether nobody else could have put something into the folder."""
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    return found.st_uid == os.getuid() and not found.st_mode & 0o022


def unpack(archive, tag, tree):
    """Unpack the common part and the compiled part `tag` into `tree`; another start may do the same at the same time."""
    import compileall
    import shutil
    import tempfile
    import zipfile

    making = tempfile.mkdtemp(prefix="making-", dir=os.path.dirname(tree))
    try:
        with zipfile.ZipFile(archive) as packed:
            for part in ("common/", tag + "/"):
                for name in packed.namelist():
                    if name.startswith(part) and not name.endswith("/"):
                        target = os.path.join(making, name[len(part) :])
                        os.makedirs(os.path.dirname(target), exist_ok=True)
                        with packed.open(name) as source, open(target, "wb") as sink:
                            shutil.copyfileobj(source, sink)
        # Without bytecode every start takes four times as long.
        compileall.compile_dir(making, quiet=2, stripdir=making, prependdir=tree)
        try:
            os.rename(making, tree)
        except OSError:
            if not os.path.isdir(tree):
                raise
    finally:
        shutil.rmtree(making, ignore_errors=True)


def find_tree(archive):
    """Return the folder of the unpacked tree, unpacking it when it is not there yet."""
    tag = native_tag()
    tried = []
    for room in rooms():
        tree = os.path.join(room, "pyz-%s-%s" % (BUILD, tag))
        try:
            os.makedirs(room, mode=0o700, exist_ok=True)
            if not ours(room):
                tried.append("%s: writable by others" % room)
                continue
            if not os.path.isdir(tree):
                sys.stderr.write("bringup: unpacking itself into %s (once)\n" % room)
                unpack(archive, tag, tree)
        except OSError as error:
            tried.append("%s: %s" % (room, error.strerror))
            continue
        return tree
    return refuse(
        "there is no folder to unpack into (%s)" % "; ".join(tried), "set BRINGUP_CACHE to a folder of yours that has 60 MB of room"
    )


def interpreter():
    """Return the path of this Python; a Python that was started without PATH does not know its own name."""
    return sys.executable or os.path.realpath("/proc/self/exe")


def called(archive):
    """Return what a person types to start this again, for the words on the screen."""
    home = os.path.expanduser("~")
    if home.startswith("/") and archive.startswith(home + "/") and home != "/":
        archive = "~" + archive[len(home) :]
    return "%s %s" % (os.path.basename(interpreter()), archive)


def main():
    """Unpack and become bringup, isolated from PYTHONPATH and from the current folder."""
    archive = os.path.abspath(sys.argv[0])
    tree = find_tree(archive)
    os.environ.setdefault("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
    os.environ["BRINGUP_COMMAND"] = called(archive)
    os.execv(interpreter(), [interpreter(), "-I", tree] + sys.argv[1:])


main()
