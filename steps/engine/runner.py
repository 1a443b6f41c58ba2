"""The runner: the one process that changes the machine. Started on a run's folder, it outlives every screen."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
from pathlib import Path

from steps.model.loading import without

USAGE = 2
UNATTENDED = "--unattended"
"""The word that says that nobody can be asked."""
_DESCRIPTORS = 65536
"""So many open files are enough. Before every command each number below the limit is closed, and a container's may be 2³⁰."""
_UNUSED = ("_uuid", "bz2", "lzma", "typing_extensions", "zlib")
"""What msgspec, shutil and uuid load when it is there and do without when it is not: a tenth of the runner's memory."""


def main(arguments: list[str] | None = None) -> int:
    """Run, resume or undo the run whose folder is named; return its exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] == ["--launch"]:
        # The one-file build has a single entry point; the launcher shares it.
        from steps.engine import launch

        return launch.main(words[1:])
    if not words:
        sys.stderr.write("usage: runner FOLDER [--token TOKEN] [--unattended] [--undo | --skip ACTION]\n")
        return USAGE
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.umask(0o027)
    limit_descriptors()
    from steps.host.trusted_path import secure

    secure(os.environ)
    return _work(Path(words[0]), words[1:])


def limit_descriptors() -> None:
    """Lower the limit of open files where it is far above all need; what is lower stays."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft > _DESCRIPTORS:
        resource.setrlimit(resource.RLIMIT_NOFILE, (_DESCRIPTORS, hard))


def _work(path: Path, words: list[str]) -> int:
    """Work on the folder; a refusal is left there for whoever started us."""
    # Only now, so that what is not used above is not loaded.
    with without(*_UNUSED):
        from steps.engine.folder import RunFolder
        from steps.engine.work import after, hold_and_work
    from steps.errors import BringupError, InputError

    folder, token = RunFolder(path), after(words, "--token")
    try:
        return hold_and_work(folder, words)
    except BringupError as error:
        if token is not None:
            with contextlib.suppress(OSError):
                folder.refuse(token, error)
        return error.exit_code
    except Exception:  # noqa: BLE001 - whatever it is, the launcher has to hear of it
        # A bug: the traceback is for the report, and the launcher must not wait for a runner that is gone.
        import traceback

        with contextlib.suppress(OSError):
            traceback.print_exc()
            folder.refuse(token, InputError("runner-broken", file=str(folder.errors)))
        return 1


if __name__ == "__main__":
    sys.exit(main())
