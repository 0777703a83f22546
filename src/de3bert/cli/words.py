"""What the verbs do with a model of words: sentences in place of texts, tags in place of labels."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from de3bert.cli.answers import answer
from de3bert.cli.output import Voice, grid
from de3bert.errors import UsageError
from de3bert.exits.points import Target

if TYPE_CHECKING:
    from de3bert.data.label_names import LabelNames
    from de3bert.data.words import WordTable
    from de3bert.exits import OperatingPoint

__all__ = [
    "calibrate",
    "evaluate",
    "is_word_model",
    "predict",
    "reader",
    "refuse",
    "refuse_targets",
    "score_test",
]

Reader = Callable[[], "WordTable"]


def is_word_model(model: str) -> bool:
    """Whether a model folder is one of words."""
    from de3bert.runtime.word_evaluate import is_word_model

    return is_word_model(model)


def refuse(model: str, verb: str, reason: str) -> None:
    """Says that a verb is not for models of words."""
    if is_word_model(model):
        raise UsageError(
            f"{model} tags words, and de3 {verb} is for classifiers of texts. {reason}"
        )


def refuse_targets(model: str, target: str, unlabelled: str | None) -> None:
    """Says that words of one sentence hang together: neither promises nor controllers for them."""
    wanted = Target.parse(target)
    if wanted.kind == "agree" or wanted.confidence is not None or wanted.keep or unlabelled:
        raise UsageError(
            f"{model} tags words. Agreement, confidence, keep and --unlabelled are for classifiers "
            "of texts: words of one sentence are no independent rows. Ask for layers=2.0, "
            "drop=0.01 or accuracy=0.9."
        )


def reader(
    data: str | None,
    text: str | None,
    text_pair: str | None,
    label: str | None,
    split: str | None = None,
    config: str | None = None,
    label_names: LabelNames | None = None,
) -> Reader | None:
    """Reads tagged sentences when asked; None without data."""
    if text_pair is not None:
        raise UsageError("A model of words reads sentences, not pairs: leave out --text-pair.")
    if data is None:
        return None
    from de3bert.data.words import read_words

    return lambda: read_words(
        data, words=text, tags=label, split=split, config=config, label_names=label_names
    )


def predict(
    voice: Voice,
    model: str,
    source: str,
    point: str | None,
    policy: str | None,
    text: str | None,
    batch_size: int,
    threads: int | None,
    strict: bool,
    backend: str | None,
) -> None:
    """One JSON line per sentence."""
    from de3bert.data.stream import stream_sentences
    from de3bert.runtime.word_evaluate import load_words
    from de3bert.runtime.words import TaggedSentence

    answer(
        voice,
        stream_sentences(source, sys.stdin.buffer, words=text),
        lambda: load_words(model, threads, backend),
        TaggedSentence,
        point=point,
        policy=policy,
        batch_size=batch_size,
        strict=strict,
        waits=source == "-",
        cut="{count} sentences were cut to {limit} tokens; the words behind have no tags",
    )


def evaluate(
    voice: Voice,
    model: str,
    table_of: Reader | None,
    point: str | None,
    policy: str | None,
    metric: str | None,
    batch_size: int,
    threads: int | None,
    backend: str | None,
) -> None:
    from de3bert.runtime.word_evaluate import check_word_request, evaluate_words, load_words

    assert table_of is not None  # the verb demands data
    table = table_of()
    check_word_request(model, table, point, policy, metric)
    tagger = load_words(model, threads, backend)
    found = evaluate_words(
        tagger, table, point=point, policy=policy, metric=metric, batch_size=batch_size,
        progress=voice.progress("evaluating"),
    )  # fmt: skip
    _warn_cut(voice, found.truncated, found.sentences, tagger.config.max_length)
    low, high = found.score_interval
    rows = [
        ["policy", found.policy],
        [found.metric, f"{found.score:.4f} (95 % interval {low:.4f} to {high:.4f})"],
        *([name, f"{value:.4f}"] for name, value in found.scores.items() if name != found.metric),
        ["mean layers of a word's piece", f"{found.layers_mean:.2f} of {tagger.depth}"],
        ["mean layers of a sentence", f"{found.sentence_layers_mean:.2f}"],
        ["layer speed-up", f"{found.layer_speedup:.2f}"],
        ["words", f"{found.rows} in {found.sentences} sentences, {found.seconds:.1f} s"],
        ["exits of words", "  ".join(f"{m}:{n}" for m, n in found.exit_histogram.items())],
    ]
    voice.result(found.to_json(), grid(["", found.point or "policy"], rows))


def calibrate(
    model: str, target: str, name: str, table_of: Reader | None, trace: str | None, **options: Any
) -> OperatingPoint:
    from de3bert.runtime.word_evaluate import calibrate_word_model

    if trace is not None:
        raise UsageError("A model of words is calibrated with --data; there are no trace files.")
    table = None if table_of is None else table_of()
    return calibrate_word_model(model, target, name, table=table, **options)


def score_test(table: WordTable, folder: Path, progress: str | None) -> dict[str, Any]:
    """Full-depth scores on a recipe's test sentences."""
    from de3bert.runtime.word_evaluate import evaluate_words, load_words

    return evaluate_words(load_words(folder), table, policy="full", progress=progress).to_json()


def _warn_cut(voice: Voice, cut: int, sentences: int, limit: int) -> None:
    if cut:
        voice.warn(
            f"{cut} of {sentences} sentences were cut to {limit} tokens; the words behind have no "
            "tags"
        )
