"""`de3bert.attach`: exits on a model you have, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

from de3bert.data.read import read_table
from de3bert.data.table import Table
from de3bert.data.tokens import TextInput
from de3bert.runtime.classifier import Classifier
from de3bert.runtime.load import load
from de3bert.tasks.inputs import as_texts
from de3bert.training.attachable import AttachOptions

__all__ = ["attach"]


def attach(
    checkpoint: str | Path,
    data: str | Path | Table | Sequence[TextInput],
    out: str | Path,
    **options: Unpack[AttachOptions],
) -> Classifier[Any]:
    """Puts exits on a trained classifier, writes them to `out`, and returns it loaded.

    No weight of the classifier is changed, and its final exit gives the same answers as before.
    Labels are not needed: without them the exits learn the final one's answers.

    Args:
        checkpoint: hub id or folder of a transformers classifier, or a model folder of de3bert.
        data: texts like those the model will see, a few thousand: a list of str or of pairs, a
            file, a hub id, or a table.
        out: the new model folder.
        **options: those of `attach_model`, by the same names:
            `labels=False` fits exits to the model's own answers although there are labels;
            `held` rows choose strengths instead of a tenth of `data`; at most `rows` are drawn;
            `pooling` is what exits read (`mean`, `cls`), `exit_layers` where they are;
            `overwrite` replaces a model, `force` fits exits to texts that lack a class,
            `progress` shows how far it is.

    Example:
        >>> clf = de3bert.attach("distilbert-base-uncased-finetuned-sst-2-english", texts, "mine")
        >>> clf.predict(["a joy from start to finish"], policy="edr(lambda=1.0) < 0.4")
    """
    table = _table(data)
    # Torch takes seconds to load: only now, when the texts are known to be sound.
    from de3bert.training.attach import attach_model

    attach_model(checkpoint, table, out, **options)
    return load(out)


def _table(data: str | Path | Table | Sequence[TextInput]) -> Table:
    if isinstance(data, Table):
        return data
    if isinstance(data, str | Path) or hasattr(data, "columns") or isinstance(data, dict):
        return read_table(data, need_labels=False)
    texts = as_texts(data, None)
    if texts and isinstance(texts[0], tuple):
        first, second = zip(*texts, strict=True)
        return Table(list(first), pairs=list(second), source="the texts given")
    return Table([str(text) for text in texts], source="the texts given")
