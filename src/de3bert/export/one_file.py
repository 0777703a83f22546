"""A model as one ONNX file that any ONNX Runtime runs: its graphs nested, its rule inside."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx_ir as ir

from de3bert import __version__
from de3bert.data.table import Table
from de3bert.errors import UsageError
from de3bert.exits import Policy
from de3bert.exits.rule_form import RuleForm, form_of
from de3bert.exits.rules import FixedLayer, Full
from de3bert.export.nest import Nest
from de3bert.files import check_file_place, replace_file, write_text
from de3bert.runtime.bundle_backend import BundleBackend
from de3bert.runtime.classifier import FULL, Classifier
from de3bert.runtime.load import load
from de3bert.runtime.manifest import is_bundle
from de3bert.runtime.one_file import FORMAT

__all__ = ["ExportedFile", "export_one_file"]


@dataclass(frozen=True)
class ExportedFile:
    """What an export gave.

    Attributes:
        rule: the form of its rule.
        points: name -> the inputs that make it; `default` is one of the names.
        left_out: name -> why a point of the model is not among them.
    """

    file: str
    precision: str
    rule: str
    exit_layers: tuple[int, ...]
    bytes: int
    default: str
    points: dict[str, dict[str, float | int]]
    left_out: dict[str, str]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def export_one_file(
    source: str | Path,
    out: str | Path,
    *,
    policy: str | None = None,
    point: str | None = None,
    record: bool = False,
    defaults: bool = True,
    int8: bool = False,
    exits: Sequence[int] | None = None,
    table: Table[Any] | None = None,
    progress: str | None = None,
    force: bool = False,
) -> ExportedFile:
    """Writes one ONNX file that predicts wherever ONNX Runtime runs.

    Args:
        source: a bundle, or what `export_model` makes one of, with its other options.
        out: the file; replaced as a whole, or not at all.
        policy, point: what says which kind of rule the file has; the model's default if neither.
        record: it also gives what every exit said.
        defaults: whether the numbers of the rule may be left out when it is run.
    """
    check_file_place(Path(out))
    if is_bundle(source):
        return _write(load(source), Path(out), policy, point, record, defaults)
    from de3bert.export.bundle import export_model

    with TemporaryDirectory(prefix="de3-one-file-") as folder:
        bundle = Path(folder) / "bundle"
        export_model(
            source, bundle, int8=int8, exits=exits, table=table, progress=progress, force=force
        )
        return _write(load(bundle), Path(out), policy, point, record, defaults)


def _write(
    bundle: Classifier[Any],
    out: Path,
    policy: str | None,
    point: str | None,
    record: bool,
    defaults: bool,
) -> ExportedFile:
    backend = bundle.backend
    assert isinstance(backend, BundleBackend)  # a bundle was loaded
    chosen = bundle.policy(point, policy)
    stored = {name: each.policy for name, each in bundle.points.items()}
    form = _form(bundle, chosen, list(stored.values()))
    default = policy or bundle.point_name(point)
    points, left_out = _points(form, {default: chosen, **stored, FULL: Policy.parse(FULL)}, bundle)
    manifest = backend.manifest
    nest = Nest(backend.folder, manifest.graphs, form, backend.classes, record)
    model = nest.build(points[default], required=not defaults)
    model.metadata_props.update(_metadata(bundle, form, default, points))
    beside = out.parent / "tokenizer.json"
    tokenizer = (backend.folder / beside.name).read_text(encoding="utf-8")
    with replace_file(out) as path:
        ir.save(model, path)
        size = path.stat().st_size
    if not beside.exists():
        write_text(beside, tokenizer)
    return ExportedFile(
        str(out), manifest.precision, str(form), backend.exit_layers, size, default, points,
        left_out,
    )  # fmt: skip


def _form(bundle: Classifier[Any], chosen: Policy, stored: list[Policy]) -> RuleForm:
    """The form of the chosen policy; for one that tests nothing, of the first one that does."""
    if not isinstance(chosen.rule, Full | FixedLayer):
        return form_of(chosen, stored)
    for policy in stored:
        with suppress(UsageError):
            return form_of(policy, stored)
    measured = bundle.has_prototypes and not bundle.backend.prototypes_unset
    return RuleForm("edr" if measured else "entropy")


def _points(
    form: RuleForm, policies: dict[str, Policy], bundle: Classifier[Any]
) -> tuple[dict[str, dict[str, float | int]], dict[str, str]]:
    """The numbers of the policies that the form has, and why others are left out."""
    points, left_out = {}, {}
    for name, policy in policies.items():
        try:
            points[name] = form.values(policy, bundle.depth)
        except UsageError as error:
            left_out[name] = str(error)
    return points, left_out


def _metadata(
    bundle: Classifier[Any],
    form: RuleForm,
    default: str,
    points: dict[str, dict[str, float | int]],
) -> dict[str, str]:
    """What the file says of itself; nothing of it names a path of this machine."""
    backend = bundle.backend
    assert isinstance(backend, BundleBackend)
    manifest = backend.manifest
    source = manifest.source
    told = {
        "format": FORMAT,
        "version": __version__,
        "labels": list(bundle.label_names),
        "rule": str(form),
        "points": points,
        "default_point": default,
        "layers": bundle.depth,
        "exit_layers": list(backend.exit_layers),
        "max_length": bundle.info.max_length,
        "tokenizer_sha256": manifest.files["tokenizer.json"].sha256,
        "source": {"model": Path(str(source["model"])).name, "weights": source["weights"]},
        "precision": manifest.precision,
    }
    return {
        f"de3bert.{name}": value if isinstance(value, str) else json.dumps(value)
        for name, value in told.items()
    }
