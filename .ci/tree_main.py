"""The program of the unpacked tree: the command; with `--runner FOLDER` the runner, with `--module NAME` another program of ours."""

from __future__ import annotations

import runpy
import sys

if __name__ == "__main__":
    if sys.argv[1:2] == ["--runner"]:
        del sys.argv[1]
        runpy.run_module("steps.engine.runner", run_name="__main__", alter_sys=True)
    elif sys.argv[1:2] == ["--module"]:
        del sys.argv[1]
        runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
    else:
        from tui.__main__ import main

        main()
