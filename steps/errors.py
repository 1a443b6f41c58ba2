"""The few kinds of error, by remedy, each with its exit code of the contract."""

from __future__ import annotations

from steps.model.base import Param


class BringupError(Exception):
    """Something a person can answer: the words are `error.<code>.{sentence,remedy}` in `assets/i18n`.

    Any other exception is a bug and keeps its traceback.
    """

    exit_code = 1

    def __init__(self, code: str, /, **params: Param) -> None:
        super().__init__(code, params)
        self.code = code
        self.params = params


class InputError(BringupError):
    """Wrong usage, or a file that is not what it should be; nothing was done."""

    exit_code = 2


class PreflightError(BringupError):
    """A check before the start refused; nothing was changed."""

    exit_code = 3


class PrivilegeError(BringupError):
    """Root is needed and could not be had."""

    exit_code = 4


class Cancelled(BringupError):
    """The person said no."""

    exit_code = 5


class InTheWay(BringupError):
    """A workload uses what would be changed."""

    exit_code = 12


class Busy(BringupError):
    """Another run, or another holder of the package manager."""

    exit_code = 75
