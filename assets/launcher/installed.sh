#!/bin/sh
# The installed command: starts Python isolated at once. A script that Python itself starts has read PYTHONPATH, and what
# lies there (sitecustomize), before a line of ours runs.
file=$0
while [ -h "$file" ]; do
    link=$(readlink "$file")
    case $link in
        /*) file=$link ;;
        *) file=${file%/*}/$link ;;
    esac
done
exec "${file%/*}/python" -I -m tui "$@"
