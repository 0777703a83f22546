"""The errors a user sees. Each says what was received, what is accepted and what to do next."""

from __future__ import annotations

__all__ = ["De3Error", "UsageError"]


class De3Error(Exception):
    """It could not be done: a broken file, a full disk, a target out of reach (exit code 1)."""

    exit_code = 1


class UsageError(De3Error):
    """The request was wrong: an unknown name, a missing column, a bad option (exit code 2)."""

    exit_code = 2
