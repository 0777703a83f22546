"""What fails inside a model, in words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from de3bert.errors import De3Error
from de3bert.printable import printable

__all__ = ["failures_told"]


@contextmanager
def failures_told() -> Iterator[None]:
    """While a model runs, whatever it raises is a De3Error.

    A config may fit its weights and yet hold what no layer can compute with, and a device may run
    out of memory: torch and the backbones have an error of their own for each.
    """
    try:
        yield
    except (De3Error, OSError):  # a full disk is told where files are written
        raise
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0] or type(error).__name__
        raise De3Error(
            f"The model failed at run time: {printable(reason)[:300]}. If its config was edited by "
            "hand, copy the model again; if memory is short, use smaller batches."
        ) from error
