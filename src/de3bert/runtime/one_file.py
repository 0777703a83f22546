"""A model in one ONNX file: tokens and the numbers of its rule in, logits and exit layer out.

What the file holds is told by its metadata; `de3bert.export.one_file` writes both.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de3bert.data.tokens import TokenRow
from de3bert.errors import De3Error, UsageError
from de3bert.exits import Policy
from de3bert.exits.rule_form import RuleForm
from de3bert.runtime.sessions import open_session

__all__ = ["FORMAT", "NUMBERS", "OneFile"]

FORMAT = "1"
PREFIX = "de3bert."
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
        self.session = open_session(path, sleeping)
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
        self._numbers: dict[Policy, Feeds | None] = {}

    def fits(self, policy: Policy) -> bool:
        """Whether the rule of the file can be this policy."""
        return self._feeds(policy) is not None

    def answer(self, row: TokenRow, policy: Policy) -> tuple[int, NDArray[np.float32]] | None:
        """The layer a row leaves at and its logits there, (1, classes); None if nothing fits."""
        feeds = self._feeds(policy)
        if feeds is None:
            return None
        tokens = {name: np.array([row[name]], dtype=np.int64) for name in self.tokens}
        logits, layer = self.session.run(("logits", "exit_layer"), {**tokens, **feeds})
        return int(layer), logits

    def _feeds(self, policy: Policy) -> Feeds | None:
        if policy not in self._numbers:
            if len(self._numbers) >= REMEMBERED:
                self._numbers = {}  # not emptied: another thread may be reading it
            self._numbers[policy] = self._worked_out(policy)
        return self._numbers[policy]

    def _worked_out(self, policy: Policy) -> Feeds | None:
        try:
            numbers = self.form.values(policy, self.depth)
        except UsageError:
            return None
        return {name: np.array(number, dtype=NUMBERS[name]) for name, number in numbers.items()}
