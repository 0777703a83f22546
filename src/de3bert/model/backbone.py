"""Loading a backbone, and what fits it: its trained pooler, and the pooling to use by default."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

from torch import nn
from transformers import AutoModel, PreTrainedModel
from transformers.utils.hub import cached_file

from de3bert.errors import UsageError
from de3bert.model.pretrained import read_whole, resolved_source

__all__ = ["Backbone", "load_backbone"]

# Encoders published as sentence embedders: their first token says little in the lower layers.
EMBEDDERS = (
    "sentence-transformers",
    "minilm",
    "gte-",
    "e5-",
    "bge-",
    "nomic-embed",
    "mpnet-base-v",
)


@dataclass
class Backbone:
    """An encoder with the facts that choose its exits."""

    module: PreTrainedModel
    name: str
    pooler: nn.Linear | None  # the pretrained pooler, None when absent or not trained
    default_pooling: str


def load_backbone(
    source: str | Path | nn.Module, *, trust_remote_code: bool = False, called: str = "backbone"
) -> Backbone:
    """An encoder from a hub id, a folder or a module (whose layers are taken over, not copied).

    Args:
        trust_remote_code: runs Python code that comes with the source; see `pretrained`.
        called: what the user calls it, for messages.
    """
    if isinstance(source, nn.Module):
        module = cast(PreTrainedModel, getattr(source, "base_model", source))
        if not hasattr(module, "config"):
            raise UsageError(
                f"A {type(source).__name__} cannot be a backbone: it has no `config`. "
                "Pass a transformers encoder, a folder or a hub id."
            )
        name = str(getattr(module.config, "name_or_path", "") or type(module).__name__)
        pooler = _pooler(module)
    else:
        name = str(source)
        module, info = read_whole(
            AutoModel, name, trust_remote_code, called=called, kind="an encoder"
        )
        trained = not any("pooler" in key for key in info["missing_keys"])
        pooler = _pooler(module) if trained else None
    mean = pooler is None or _is_embedder(source, name)
    return Backbone(module, name, pooler, "mean" if mean else "shared_pooler")


def _pooler(module: nn.Module) -> nn.Linear | None:
    pooler = getattr(module, "pooler", None)
    dense = getattr(pooler, "dense", pooler)
    return dense if isinstance(dense, nn.Linear) else None


def _is_embedder(source: str | Path | nn.Module, name: str) -> bool:
    # Of a folder only its own name counts, not where it lies.
    shown = Path(name).name if Path(name).is_dir() else name
    lowered = shown.lower().replace("_", "-")
    if any(mark in lowered for mark in EMBEDDERS):
        return True
    if isinstance(source, nn.Module):
        return False
    try:
        found = cached_file(
            resolved_source(name), "modules.json", _raise_exceptions_for_missing_entries=False
        )
    except OSError:
        return False
    return found is not None
