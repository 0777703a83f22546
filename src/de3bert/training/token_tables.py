"""The table of a model whose tokens stop one by one, made from its training texts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from de3bert.errors import De3Error
from de3bert.exits.token_hash import HASHES, count_tokens
from de3bert.model import EarlyExitModel
from de3bert.model.tokens import TextEncoder
from de3bert.training.hook import HOOKS, Hook
from de3bert.training.rows import Rows

__all__ = ["FillTokenTable", "fill_token_table"]


@HOOKS.register("token_table")
class FillTokenTable(Hook):
    """Gives every token of the vocabulary its last layer before the training begins."""

    def before(self) -> None:
        context = self.context
        fill_token_table(context.model, context.rows, context.encoder, context.seed)


def fill_token_table(model: EarlyExitModel, rows: Rows, encoder: TextEncoder, seed: int) -> None:
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
    words: Any = model.get_input_embeddings().weight
    known = replace(found, embeddings=words.detach().float().cpu().numpy())
    options = model.config.method_options or {}
    table.fill(HASHES[str(options["hash"])](known, len(table.layers)))
