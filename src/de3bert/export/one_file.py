"""A model as one ONNX file that any ONNX Runtime runs: its graphs nested, its rule inside."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx
import onnx_ir as ir

from de3bert import __version__
from de3bert.data.table import Table
from de3bert.errors import De3Error, UsageError
from de3bert.exits import Policy
from de3bert.exits.rule_form import RuleForm, form_of
from de3bert.exits.rules import FixedLayer, Full
from de3bert.export.check_one import Alike, compare_one
from de3bert.export.nest import Nest
from de3bert.files import check_file_place, replace_file, write_text
from de3bert.runtime.bundle_backend import BundleBackend
from de3bert.runtime.classifier import FULL, Classifier
from de3bert.runtime.load import load
from de3bert.runtime.manifest import Single, is_bundle
from de3bert.runtime.one_file import FORMAT, LOWEST_RUNTIME, PREFIX, OneFile

__all__ = ["ExportedFile", "add_single", "export_one_file"]

SINGLE = "single.onnx"  # in a bundle
TOKENIZER = "tokenizer.json"
LARGEST = 2**31 - 2**20  # bytes of a protobuf message, and some for what is not weights
Numbers = Mapping[str, float | int]


@dataclass(frozen=True)
class ExportedFile:
    """What an export gave.

    Attributes:
        rule: the form of its rule.
        points: name -> the inputs that make it; `default_point` is one of the names.
        left_out: name -> why a point of the model is not among them.
        alike: how it compares with the bundle, text by text.
    """

    file: str
    precision: str
    rule: str
    exit_layers: tuple[int, ...]
    bytes: int
    default_point: str
    points: dict[str, Numbers]
    left_out: dict[str, str]
    alike: Alike

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Written:
    """What a file holds: its rule, and the policies that its inputs can make of it."""

    form: RuleForm
    default: str
    points: dict[str, Numbers]
    left_out: dict[str, str]


def export_one_file(
    source: str | Path,
    out: str | Path,
    *,
    policy: str | None = None,
    point: str | None = None,
    record: bool = False,
    no_defaults: bool = False,
    int8: bool = False,
    exits: Sequence[int] | None = None,
    table: Table[Any] | None = None,
    progress: str | None = None,
    force: bool = False,
) -> ExportedFile:
    """Writes one ONNX file that predicts wherever ONNX Runtime runs, and its tokenizer beside it.

    Args:
        source: a bundle, or what `export_model` makes one of, with its other options.
        out: the file; replaced as a whole, or not at all.
        policy, point: what says which kind of rule the file has; the model's default if neither.
        record: it also gives what every exit said.
        no_defaults: the numbers of the rule must all be given, as JavaScript wants it.
    """
    out = Path(out)
    check_file_place(out)
    if is_bundle(source):
        if int8 or exits is not None or table is not None:
            raise UsageError(
                f"{source} is a bundle already: its precision, its exits and its points are what "
                "they are. Give the model folder it was made from."
            )
        return _export(load(source), out, policy, point, record, no_defaults)
    from de3bert.export.bundle import export_model

    with TemporaryDirectory(prefix="de3-one-file-") as folder:
        made = Path(folder) / "bundle"
        export_model(
            source, made, int8=int8, exits=exits, table=table, progress=progress, force=force
        )
        return _export(load(made), out, policy, point, record, no_defaults)


def add_single(folder: Path) -> tuple[Single | None, dict[str, Any]]:
    """Puts the file for single rows into a bundle, where that is possible; says what came of it."""
    bundle = load(folder)
    try:
        held = _held(bundle, None, None)
        alike = _write(bundle, held, folder / SINGLE)
    except De3Error as error:  # batches, and all else, still run stretch by stretch
        return None, {"refused": str(error)}
    return Single(file=SINGLE, rule=str(held.form)), {"rule": str(held.form), **alike.to_json()}


def _export(
    bundle: Classifier[Any],
    out: Path,
    policy: str | None,
    point: str | None,
    record: bool,
    no_defaults: bool,
) -> ExportedFile:
    backend = _bundled(bundle)
    tokenizer = (backend.folder / TOKENIZER).read_text(encoding="utf-8")
    beside = out.parent / TOKENIZER
    if beside.exists() and beside.read_bytes() != tokenizer.encode("utf-8"):
        raise UsageError(
            f"{beside} is the tokenizer of another model, and the one of this model belongs there. "
            "Choose another folder."
        )
    held = _held(bundle, policy, point)
    alike = _write(bundle, held, out, record=record, required=no_defaults)
    write_text(beside, tokenizer)
    return ExportedFile(
        file=str(out),
        precision=backend.manifest.precision,
        rule=str(held.form),
        exit_layers=backend.exit_layers,
        bytes=out.stat().st_size,
        default_point=held.default,
        points=held.points,
        left_out=held.left_out,
        alike=alike,
    )


def _held(bundle: Classifier[Any], line: str | None, point: str | None) -> Written:
    """What the file will hold; UsageError with the reason where there can be none."""
    _check_model(bundle)
    chosen = bundle.policy(point, line)
    stored = {name: each.policy for name, each in bundle.points.items()}
    form = _form(bundle, chosen, list(stored.values()))
    default = line or bundle.point_name(point)
    points: dict[str, Numbers] = {}
    left_out = {}
    for name, policy in {default: chosen, **stored, FULL: Policy.parse(FULL)}.items():
        try:
            points[name] = form.values(policy, bundle.depth)
        except UsageError as error:
            left_out[name] = str(error)
    return Written(form, default, points, left_out)


def _check_model(bundle: Classifier[Any]) -> None:
    backend = _bundled(bundle)
    reason = None
    if bundle.task.splits_words:
        reason = "the words of a sentence leave together, and the file answers for one text"
    elif backend.token_layers is not None:
        reason = "its tokens stop one by one, by a table"
    elif len(backend.exit_layers) < 2:
        reason = "it has no exit but the last, so nothing is left to decide"
    elif (size := _bytes(backend)) > LARGEST:
        reason = f"it takes {size / 1e9:.1f} GB, and an ONNX file ends at 2 GB"
    if reason is not None:
        raise UsageError(
            f"This model cannot be put into one graph: {reason}. A bundle (--out) runs it stretch "
            "by stretch."
        )


def _bytes(backend: BundleBackend) -> int:
    names = [name for each in backend.manifest.graphs for name in (each.file, each.distances)]
    return sum(backend.manifest.files[name].bytes for name in names if name is not None)


def _form(bundle: Classifier[Any], chosen: Policy, stored: list[Policy]) -> RuleForm:
    """The form of the chosen policy; for one that tests nothing, that of most of the others."""
    if not isinstance(chosen.rule, Full | FixedLayer):
        try:
            return form_of(chosen, stored)
        except UsageError as error:
            raise UsageError(
                f"The rule cannot be written into one file: {error}. Name another one with --point "
                'or --policy, such as "entropy < 0.2".'
            ) from error
    measured = bundle.has_prototypes and not bundle.backend.prototypes_unset
    forms = [RuleForm("edr" if measured else "entropy")]
    for policy in stored:
        with suppress(UsageError):
            forms.append(form_of(policy, stored))
    return max(forms, key=lambda form: sum(map(form.fits, stored)))


def _write(
    bundle: Classifier[Any],
    held: Written,
    out: Path,
    *,
    record: bool = False,
    required: bool = False,
) -> Alike:
    """Writes the file and compares it with the bundle before it is put in place."""
    backend = _bundled(bundle)
    nest = Nest(backend.folder, backend.manifest.graphs, held.form, backend.classes, record)
    with replace_file(out) as path:
        alike = _checked(nest, held, bundle, path, required)
        if not alike.equal:
            raise De3Error(
                f"The one file does not answer as the bundle does: {alike.difference}. Nothing was "
                "written; the bundle still runs."
            )
    return alike


def _checked(
    nest: Nest, held: Written, bundle: Classifier[Any], path: Path, required: bool
) -> Alike:
    try:
        model = nest.build(held.points[held.default], required=required)
        model.metadata_props.update(_metadata(bundle, held))
        ir.save(model, path)
        onnx.checker.check_model(path, full_check=True)
        return compare_one(bundle, OneFile(path))
    except De3Error:
        raise
    except OSError:  # a full disk, said by whoever writes the file
        raise
    except Exception as error:  # the libraries raise all kinds
        reason = (str(error) or "-").splitlines()[0]
        raise De3Error(
            f'The encoder family "{bundle.info.family}" cannot be put into one graph: '
            f"{type(error).__name__}: {reason}. The bundle still runs."
        ) from error


def _metadata(bundle: Classifier[Any], held: Written) -> dict[str, str]:
    """What the file says of itself; nothing of it names a path of this machine."""
    manifest = _bundled(bundle).manifest
    source = manifest.source
    told: dict[str, Any] = {
        "format": FORMAT,
        "version": __version__,
        "onnxruntime": LOWEST_RUNTIME,
        "labels": list(bundle.label_names),
        "rule": str(held.form),
        "points": held.points,
        "default_point": held.default,
        "layers": bundle.depth,
        "exit_layers": list(bundle.backend.exit_layers),
        "max_length": bundle.info.max_length,
        "tokenizer_sha256": manifest.files[TOKENIZER].sha256,
        "source": {
            "model": Path(str(source.get("model"))).name,
            "weights": source.get("weights"),
        },
        "precision": manifest.precision,
    }
    return {
        PREFIX + name: value if isinstance(value, str) else json.dumps(value)
        for name, value in told.items()
    }


def _bundled(bundle: Classifier[Any]) -> BundleBackend:
    assert isinstance(bundle.backend, BundleBackend)  # a bundle was loaded
    return bundle.backend
