"""A model in one ONNX file: tokens and the numbers of its rule in, logits and exit layer out.

What the file holds is told by its metadata; `de3bert.export.one_file` writes both.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from de3bert.data.tokens import TokenRow
from de3bert.errors import De3Error, UsageError
from de3bert.exits import Policy
from de3bert.exits.rule_form import RuleForm
from de3bert.runtime.sessions import open_session

__all__ = ["FORMAT", "LOWEST_RUNTIME", "PREFIX", "OneFile"]

FORMAT = "1"
PREFIX = "de3bert."  # of the names of the metadata
LOWEST_RUNTIME = "1.18"  # of ONNX Runtime: the first that reads version 10 of the format
NUMBERS: dict[str, type] = {
    "threshold": np.float32,
    "lambda": np.float32,
    "patience": np.int64,
    "max_layers": np.int64,
}
TOKENS = ("input_ids", "token_type_ids")
REMEMBERED = 256  # policies whose numbers need not be worked out again

Feeds = dict[str, NDArray[Any]]


class OneFile:
    """The file, ready to run.

    Args:
        sleeping: so many threads of its own that sleep; None takes the pool that all share.
    """

    def __init__(self, path: Path, sleeping: int | None = None) -> None:
        self.session = self._opened(path, sleeping)
        kept: dict[str, str] = self.session.get_modelmeta().custom_metadata_map
        self.metadata = {
            name.removeprefix(PREFIX): text
            for name, text in kept.items()
            if name.startswith(PREFIX)
        }
        found = self.metadata.get("format")
        if found != FORMAT:
            raise De3Error(
                f"{path} is not a model in one file that this version of de3bert reads (format "
                f"{found!r:.20}, read is {FORMAT!r}). Write it again with: de3 export MODEL "
                "--one-file FILE"
            )
        self.form = RuleForm.parse(self.metadata["rule"])
        self.depth = int(self.metadata["layers"])
        given = [each.name for each in self.session.get_inputs()]
        self.tokens = [name for name in TOKENS if name in given]
        self._numbers: dict[Policy, Feeds] = {}

    @staticmethod
    def _opened(path: Path, sleeping: int | None) -> Any:
        try:
            return open_session(path, sleeping)
        except UsageError:
            raise
        except De3Error as error:
            raise De3Error(
                f"{error}\nA model in one file needs ONNX Runtime {LOWEST_RUNTIME} or later; this "
                f"is {onnxruntime.__version__}."
            ) from error

    def answer(
        self, row: TokenRow, policy: Policy, at_most: int | None = None
    ) -> tuple[int, NDArray[np.float32]]:
        """The layer a row leaves at and its logits there, (1, classes).

        Args:
            at_most: the deepest layer it may run to, whatever the policy says.

        Raises:
            UsageError: the rule of the file cannot be this policy (see `RuleForm.fits`).
        """
        feeds = self._feeds(policy)
        if at_most is not None:
            feeds = {**feeds, "max_layers": np.array(at_most)}
        tokens = {name: np.array([row[name]], dtype=np.int64) for name in self.tokens}
        logits, layer = self.session.run(("logits", "exit_layer"), {**tokens, **feeds})
        return int(layer), logits

    def _feeds(self, policy: Policy) -> Feeds:
        known = self._numbers.get(policy)
        if known is None:
            numbers = self.form.values(policy, self.depth)
            known = {name: np.array(value, dtype=NUMBERS[name]) for name, value in numbers.items()}
            if len(self._numbers) >= REMEMBERED:
                self._numbers = {}  # not emptied: another thread may be reading it
            self._numbers[policy] = known
        return known
