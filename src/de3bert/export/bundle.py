"""From a model folder to a bundle: written, checked, recalibrated if needed; all or nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from de3bert.card import write_card
from de3bert.data.table import Table
from de3bert.errors import De3Error, UsageError
from de3bert.export.attention import FUSED, PLAIN, attention_as
from de3bert.export.check import Agreement, compare
from de3bert.export.one_file import add_single
from de3bert.export.quantise import quantise_graph
from de3bert.export.recalibrate import Recalibrated, calibration_rows, check_table, recalibrate
from de3bert.export.write import GraphWriter, write_tokenizer
from de3bert.files import check_folder_place, read_json, replace_folder, write_json
from de3bert.machine import versions
from de3bert.model.failures import failures_told
from de3bert.runtime.classifier import Classifier
from de3bert.runtime.load import load
from de3bert.runtime.manifest import Manifest, is_bundle
from de3bert.runtime.torch_backend import TorchBackend

__all__ = ["Exported", "export_model"]


@dataclass(frozen=True)
class Exported:
    """What an export gave.

    Attributes:
        single: of the graph for single rows, its rule and how it compares, or why there is none.
    """

    folder: str
    precision: str
    exit_layers: tuple[int, ...]
    bytes: int
    agreement: Agreement
    recalibrated: Recalibrated | None
    single: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        again = self.recalibrated.to_json() if self.recalibrated else None
        return {**vars(self), "agreement": self.agreement.to_json(), "recalibrated": again}


def export_model(
    source: str | Path,
    out: str | Path,
    *,
    int8: bool = False,
    exits: Sequence[int] | None = None,
    table: Table[Any] | None = None,
    progress: str | None = None,
    force: bool = False,
) -> Exported:
    """Writes a bundle that predicts with numpy, tokenizers and onnxruntime alone.

    Args:
        source: a model folder or hub id.
        out: the folder to write; replaced as a whole, or not at all.
        int8: 8-bit weights. Answers change a little, so the operating points are recalibrated.
        exits: keep only these exits (the last layer always stays); points are recalibrated.
        table: calibration rows; None looks for those that the points were calibrated on.
        force: calibrate on few rows, or on rows that lack a class of the model, too.
    """
    _check_places(Path(source), Path(out))
    model = load(source, device="cpu")
    layers = _chosen_exits(exits, model.backend.exit_layers)
    _check_heads(model, layers)
    changed = int8 or layers != model.backend.exit_layers
    if changed and model.points and table is None:
        table = calibration_rows(model)
    if changed and table is not None:
        check_table(model, table, force)
    precision = "int8" if int8 else "fp32"
    again = None
    with replace_folder(out) as folder:
        with failures_told():
            manifest, agreement = _write(model, folder, layers)
        if int8:
            for graph in manifest.graphs:
                quantise_graph(folder / graph.file)
            manifest = manifest.model_copy(update={"precision": precision})
            manifest.write(folder)
        if changed and table is not None:
            again = recalibrate(folder, model, table, progress, force=force)
        single, told = add_single(folder)
        made = {
            **manifest.made,
            "agreement": agreement.to_json(),
            "recalibrated": again.to_json() if again else None,
            "single": told,
        }
        manifest.model_copy(update={"made": made, "single": single}).write(folder)
        write_card(folder, title=Path(out).name)
        size = sum(path.stat().st_size for path in folder.iterdir())
    return Exported(str(out), precision, layers, size, agreement, again, told)


def _check_places(source: Path, out: Path) -> None:
    if is_bundle(source):
        raise UsageError(f"{source} is a bundle already; export the model folder it was made from.")
    if (out / "config.json").exists() and not is_bundle(out):
        raise UsageError(f"{out} holds a model; a bundle needs its own folder.")
    if out.is_dir() and any(out.iterdir()) and not is_bundle(out):
        raise UsageError(f"{out} has other files in it; a bundle needs its own folder.")
    check_folder_place(out)


def _chosen_exits(wanted: Sequence[int] | None, have: tuple[int, ...]) -> tuple[int, ...]:
    if wanted is None:
        return have
    unknown = sorted(set(wanted) - set(have))
    if unknown or not wanted:
        named = ", ".join(map(str, unknown)) or "none at all"
        raise UsageError(
            f"The exits to keep must be among those of the model, got {named}. "
            f"It has exits after layers {', '.join(map(str, have))}."
        )
    return tuple(sorted({*wanted, have[-1]}))


def _check_heads(model: Classifier[Any], layers: tuple[int, ...]) -> None:
    assert isinstance(model.backend, TorchBackend)  # a model folder was loaded
    trained = model.backend.model
    if model.task.splits_words and (trained.heads.keeps_memory or trained.heads.reads_tokens):
        raise UsageError(
            f"The heads of the method {model.info.method} read more than the state of a word, so "
            "its tagger cannot be exported. The model folder still runs with torch."
        )
    fixed = trained.heads.keeps_memory or trained.config.cascade
    if fixed and layers != model.backend.exit_layers:
        raise UsageError(
            f"Exits of the method {model.info.method} build on the exits before them, so none "
            "can be left out. Export it with all its exits."
        )


def _write(
    model: Classifier[Any], folder: Path, layers: tuple[int, ...]
) -> tuple[Manifest, Agreement]:
    """An fp32 bundle: with fused attention where that proves right, else with the plain one."""
    failures: list[str] = []
    tries = [(attention, True) for attention in reversed(_attentions(model))]
    while tries:
        attention, templates = tries.pop()
        try:
            manifest, filled = _write_with(attention, model, folder, layers, templates)
            agreement = compare(model, load(folder))
        except UsageError:
            raise
        except Exception as error:  # the exporter and the runtime raise all kinds
            failures.append(f"{type(error).__name__}: {(str(error) or '-').splitlines()[0]}")
            continue
        if agreement.close:
            return manifest, agreement
        failures.append(f"its signals differ by {agreement.signals:.2g} from the model's")
        if filled:  # layers that look alike and are not
            tries.append((attention, False))
    raise De3Error(
        f'The encoder family "{model.info.family}" cannot be exported: {failures[-1]}.\n'
        "The model folder still runs with torch."
    )


def _attentions(model: Classifier[Any]) -> tuple[str, ...]:
    """What to try; a backbone that computes attention itself has nothing that could be fused."""
    assert isinstance(model.backend, TorchBackend)  # a model folder was loaded
    backbone = model.backend.model.encoder.backbone
    return (FUSED, PLAIN) if getattr(backbone, "_supports_attention_backend", True) else (PLAIN,)


def _origin(source: str) -> dict[str, Any]:
    """What the model was trained from, by ids of the hub, for the card of the bundle."""
    path = Path(source) / "training.json"
    record = read_json(path) if path.is_file() else {}
    return {name: record[name] for name in ("base_model", "datasets") if record.get(name)}


def _write_with(
    attention: str, model: Classifier[Any], folder: Path, layers: tuple[int, ...], templates: bool
) -> tuple[Manifest, int]:
    """The manifest, and how many graphs are copies of another with other weights."""
    backend = model.backend
    assert isinstance(backend, TorchBackend)  # a model folder was loaded
    trained = backend.model.float().eval().requires_grad_(False)
    with attention_as(trained.encoder, attention):
        writer = GraphWriter(trained, backend.encoder, templates=templates)
        graphs = writer.write(folder, layers)
    config = json.loads(trained.config.to_json_string(use_diff=False))
    write_json(folder / "config.json", {**config, "exit_layers": list(layers)})
    manifest = Manifest(
        precision="fp32",
        graphs=graphs,
        inputs=tuple(writer.inputs),
        context={name: list(axes) for name, axes in zip(writer.names, writer.axes, strict=True)},
        padding=write_tokenizer(backend.encoder, folder),
        prototypes_unset=backend.prototypes_unset,
        task=model.task.name,
        unknown=getattr(backend.encoder, "unknown", None),
        source={"model": model.source, "weights": model.weights_sha256, **_origin(model.source)},
        made={
            "attention": attention,
            "versions": versions(),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
        },
    )
    manifest.write(folder)
    return manifest, writer.templates.filled
