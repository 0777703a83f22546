"""The model card: what a folder is, what its points were measured to give, how to use it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from de3bert.card_metadata import metadata_block
from de3bert.errors import De3Error
from de3bert.files import read_json, write_text
from de3bert.methods.poolings import pooling_words
from de3bert.printable import cut_list, printable
from de3bert.tasks import task_of

__all__ = ["card_text", "points_table", "write_card"]

CARD = """{metadata}

# {title}

An early-exit {kind}: {classes} classes ({labels}), {depth} layers, an exit after layers
{exits}. Method `{method}`, pooling `{pooling}`{built}, {prototypes},
on the backbone `{backbone}`{small}.

```python
import de3bert

clf = de3bert.load({folder})
clf.predict([{example}]{point})
```

## Operating points

Chosen and measured on calibration rows, which are not the rows to report scores on.

{points}
{curve}
{ending}
"""
ATTACHED = """## Exits

The classifier is `{backbone}` with all its weights unchanged. Its exits were
fitted to {rows} texts, {labels}. Results of each exit on {held} other texts ({meaning}):

{accuracy}"""
TRAINING = """## Training

The resolved recipe is in `recipe.toml`, the log in `training.json`. Accuracy of each exit on
calibration rows:

{accuracy}"""
BUNDLE = """## Bundle

{precision} graphs, one per stretch of layers between exits, {size:.1f} MB. Runs with numpy,
tokenizers and onnxruntime, without torch. Made {date} with {versions}. `manifest.json` has a hash
of every file, which is checked on loading."""

# In Markdown these begin links, code, HTML or the next cell of a table.
MARKUP = re.compile(r"[\\`*\[\]<>|&!#~@]|(?<=[a-zA-Z]):(?=//)|(?<=www)\.")
LONGEST = 300  # characters of a name or a sentence from a config
UNNAMED = {"0": "LABEL_0", "1": "LABEL_1"}  # what transformers does not write down
UNMEASURED = "not measured since the prototypes were adapted"


def write_card(folder: str | Path, title: str | None = None) -> None:
    """Writes README.md from the config and the training record of a model folder.

    `title` is the name to show when the folder has a temporary one.
    """
    folder = Path(folder)
    text = card_text(folder, read_json(folder / "config.json"), title)
    write_text(folder / "README.md", text)


def card_text(folder: Path, config: dict[str, Any], title: str | None = None) -> str:
    """The card of a folder with this config; De3Error if its files are inconsistent."""
    path = folder / "training.json"
    record = read_json(path) if path.exists() else {}
    try:
        return _filled(folder, config, record, title or folder.name)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise De3Error(
            f"The files in {folder} are inconsistent ({error!r:.200}), so its card cannot be "
            "written. Copy or create the model again."
        ) from error


def _filled(folder: Path, config: dict[str, Any], record: dict[str, Any], title: str) -> str:
    points = config.get("operating_points") or {}
    config = {"id2label": UNNAMED, **config}
    names = [_plain(config["id2label"][key]) for key in sorted(config["id2label"], key=int)]
    task = task_of(config)
    origin = record or _manifest(folder).get("source") or {}
    return CARD.format(
        metadata=metadata_block(title, task.name, config["method"], origin, points),
        kind=task.describes,
        example=task.example,
        title=_plain(title),
        folder=_string(title),
        classes=len(names),
        labels=cut_list(names),
        depth=config["exit_layers"][-1],
        exits=", ".join(map(str, config["exit_layers"])),
        method=_code(config["method"]),
        pooling=_code(config["pooling"]),
        built=_built(config["pooling"]),
        backbone=_code(
            record.get("backbone", config["backbone_config"].get("model_type", "unknown"))
        ),
        small=_small(record, config),
        prototypes=_prototypes(config),
        point=_usage(config.get("default_point"), list(points)),
        points=points_table(points),
        curve="\n![curve](curve.png)\n" if (folder / "curve.png").exists() else "",
        ending=_ending(folder, record, config.get("fitted") or {}),
    )


def _small(record: dict[str, Any], config: dict[str, Any]) -> str:
    """What a cascade begins with, and what that costs."""
    if not config.get("cascade"):
        return ""
    own = config.get("small_config") or {}
    name = record.get("small_backbone", own.get("model_type"))
    first = f"the small encoder `{_code(name)}`" if name else "a copy of its first layers"
    return f", after {first} at the cost of {int(config['cascade'])} of its layers"


def _ending(folder: Path, record: dict[str, Any], fitted: dict[str, Any]) -> str:
    """How the folder came to be: a training, exits put on a model, or an export."""
    manifest = _manifest(folder)
    if not manifest and record.get("attached"):
        known = fitted.get("labels") == "given"
        return ATTACHED.format(
            backbone=_code(record.get("backbone", "unknown")),
            rows=int(fitted.get("rows", 0)),
            labels="with their labels" if known else "without labels, on the model's own answers",
            held=int(fitted.get("held", 0)),
            meaning="accuracy" if known else "agreement with the last layer",
            accuracy=_accuracy_table(record.get("exit_accuracy", {})),
        )
    if not manifest:
        return TRAINING.format(accuracy=_accuracy_table(record.get("exit_accuracy", {})))
    return BUNDLE.format(
        precision=_plain(manifest["precision"]),
        size=sum(known["bytes"] for known in manifest["files"].values()) / 1e6,
        date=_plain(str(manifest["made"].get("date", ""))[:10]),
        versions=cut_list(
            _plain(f"{k} {v}") for k, v in manifest["made"].get("versions", {}).items()
        ),
    )


def _manifest(folder: Path) -> dict[str, Any]:
    """That of a bundle; empty for a model folder."""
    path = folder / "manifest.json"
    if not path.exists():
        return {}
    manifest = read_json(path)
    if not isinstance(manifest.get("files"), dict):
        raise De3Error(f"{path} is damaged: it lists no files. Export the model again.")
    return manifest


def points_table(points: dict[str, Any]) -> str:
    """Stored points as a Markdown table."""
    if not points:
        return "None yet: `de3 calibrate MODEL --data FILE --target layers=2.0 --name 2x`."
    lines = [
        "| point | policy | target | score | 95 % interval | mean layers | layer speed-up | rows |",
        "|---|---|---|---|---|---|---|---|",
    ]
    warnings = []
    for name, point in points.items():
        seen = point["measured"]
        opening = f"| {_plain(name)} | `{_code(point['policy'])}` | {_plain(point['target'])} |"
        if not seen:
            lines.append(f"{opening} {UNMEASURED} | - | - | - | - |")
            continue
        low, high = seen["score_interval"]
        lines.append(
            f"{opening} {seen['score']:.3f} ({_plain(seen['metric'])}) | {low:.3f} to {high:.3f} | "
            f"{seen['layers_mean']:.2f} | {seen['layer_speedup']:.2f} | {int(seen['rows'])} |"
        )
        promise = (seen.get("guarantee") or {}).get("promise")
        warnings += [f"- {_plain(name)}: {_plain(promise)}"] if promise else []
        warnings += [f"- {_plain(name)}: {_plain(text)}" for text in seen.get("warnings", [])]
    return "\n".join([*lines, *([""] if warnings else []), *warnings])


def _built(pooling: str) -> str:
    """What the pooling makes of the states, where it is one of ours."""
    words = pooling_words(pooling)
    return "" if words == pooling else f" ({words})"


def _prototypes(config: dict[str, Any]) -> str:
    if config["prototypes"] == "none":
        return "no prototypes"
    means = {
        "all rows": "means over all training rows",
        "adapted": f"adapted to {(config.get('adapted_to') or {}).get('rows')} unlabelled rows",
    }.get(config.get("prototype_means", ""), "moving means")
    return f"prototypes `{_code(config['prototypes'])}` ({_plain(means)})"


def _usage(default: str | None, names: list[str]) -> str:
    """The point in the example: the default, else the first that stops early."""
    shown = default or next((name for name in names if name != "full"), None)
    return f", point={_string(shown)}" if shown else ""


def _accuracy_table(accuracy: dict[str, float]) -> str:
    if not accuracy:
        return "Not recorded."
    head = "| layer | " + " | ".join(map(_plain, accuracy)) + " |"
    rule = "|---" * (len(accuracy) + 1) + "|"
    values = "| accuracy | " + " | ".join(f"{value:.3f}" for value in accuracy.values()) + " |"
    return "\n".join([head, rule, values])


def _plain(text: object) -> str:
    """Foreign text as words of a Markdown document, which it can neither leave nor mark up."""
    return MARKUP.sub(lambda match: f"&#{ord(match[0])};", _line(text))


def _code(text: object) -> str:
    """Foreign text to stand between backticks, in a table or not."""
    return _line(text).replace("`", "'").replace("|", "/")


def _string(text: object) -> str:
    """Foreign text as a string in the example's code."""
    return json.dumps(_line(text).replace("`", "'"), ensure_ascii=False)


def _line(text: object) -> str:
    return printable(" ".join(str(text).split()))[:LONGEST]
