"""The table of a model whose tokens stop one by one, made from its training texts."""

from __future__ import annotations

from de3bert.data.table import Table
from de3bert.errors import De3Error, UsageError
from de3bert.exits.token_hash import HASHES, count_tokens
from de3bert.methods import Method
from de3bert.model import EarlyExitForSequenceClassification
from de3bert.model.tokens import TextEncoder
from de3bert.training.hook import HOOKS, Hook
from de3bert.training.rows import Rows

__all__ = ["FillTokenTable", "check_single_texts", "fill_token_table"]


def check_single_texts(method: Method, table: Table) -> None:
    """Refuses pairs for a method whose tables are statistics of single texts."""
    if method.token_exits == "hash" and table.pairs is not None:
        raise UsageError(
            f"Method {method.name} does not fit {table.source}, which has pairs of texts: where a "
            "token stops is a statistic of single texts, and says nothing of how two texts relate. "
            "Use a method that stops whole texts, such as de3."
        )


@HOOKS.register("token_table")
class FillTokenTable(Hook):
    """Gives every token of the vocabulary its last layer before the training begins."""

    def before(self) -> None:
        context = self.context
        fill_token_table(context.model, context.rows, context.encoder, context.seed)


def fill_token_table(
    model: EarlyExitForSequenceClassification, rows: Rows, encoder: TextEncoder, seed: int
) -> None:
    """Gives every id of the training texts its last layer, by the option `hash`."""
    table = model.encoder.token_exits
    if table is None:
        raise De3Error("This model has no table of tokens that could be filled.")
    found = count_tokens(
        ((row["input_ids"], row["labels"]) for row in rows.rows),  # type: ignore[misc]
        len(table.token_layers),
        len(model.config.label_names),
        encoder.tokenizer.all_special_ids,
        seed,
    )
    options = model.config.method_options or {}
    table.fill(HASHES[str(options["hash"])](found))
