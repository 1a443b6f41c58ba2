"""The program of the unpacked tree: `python -I TREE …` is the command, `python -I TREE --runner FOLDER` is the runner."""

from __future__ import annotations

import runpy
import sys

if __name__ == "__main__":
    if sys.argv[1:2] == ["--runner"]:
        del sys.argv[1]
        runpy.run_module("steps.engine.runner", run_name="__main__", alter_sys=True)
    else:
        from tui.__main__ import main

        main()
