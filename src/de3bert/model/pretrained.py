"""The one way to read configs, models and tokenizers of others: no code of theirs is ever run.

Left to itself, transformers asks on standard input whether to run Python code that a folder brings
along, and `yes |` answers. Here that code is refused unless the caller was told otherwise, and what
a config promises is checked before anything of that size is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel
from transformers.utils.hub import cached_file

from de3bert.data.packaged import DEMO_BACKBONE, minilm_folder
from de3bert.errors import De3Error, UsageError
from de3bert.files import read_json
from de3bert.limits import check_limit, check_sizes
from de3bert.printable import cut_list, printable

__all__ = ["from_config", "from_pretrained", "read_whole", "reason_of", "resolved_source"]

DECLARATIONS = ("config.json", "tokenizer_config.json")
TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "merges.txt", "spiece.model")
WEIGHTS = ("*.safetensors", "*.bin")
SMALLEST = 0.5  # bytes that a stored weight takes at least: four bits
SLACK = 20_000_000  # parameters that a config may promise beyond what is stored, as fresh heads are
OF_THE_HUB = ("huggingface.co", "internet connection", "hf.co")


def from_pretrained(
    loader: Any, source: str, *, trust_remote_code: bool = False, **options: Any
) -> Any:
    """`loader.from_pretrained(source)` of any transformers class, without third-party code.

    Args:
        loader: an auto class, a model, a config or a tokenizer class.
        source: folder, hub id, or `demo` for the encoder of the demo.
        trust_remote_code: runs what the folder brings; only where the user asked for it by name.

    Raises:
        UsageError: it needs code of its own, or promises more than the limits allow.
        Exception: whatever the loader raises.
    """
    source = resolved_source(source)
    if Path(source).is_file():
        raise UsageError(f"{source} is a file; a model is a folder with config.json and weights.")
    _check_declarations(source, trust_remote_code)
    try:
        return loader.from_pretrained(source, trust_remote_code=trust_remote_code, **options)
    except ValueError as error:
        if "trust_remote_code" in str(error):
            raise _foreign_code(source) from error
        raise


def read_whole(
    loader: Any, name: str, trust_remote_code: bool, *, called: str, kind: str
) -> tuple[PreTrainedModel, dict[str, Any]]:
    """A model in float32, and what the loader says of its weights.

    Args:
        called: what the user calls it; `kind` is what a folder should hold.

    Raises:
        UsageError: there is no such model.
        De3Error: the folder holds something else, or its weights cannot be read.
    """
    try:
        model, info = from_pretrained(
            loader,
            name,
            trust_remote_code=trust_remote_code,
            dtype=torch.float32,
            output_loading_info=True,
        )
    except De3Error:
        raise
    except (OSError, ValueError, KeyError) as error:
        reason = reason_of(error, name)
        if Path(name).is_dir():
            raise De3Error(f"The folder {name} does not load as {kind}: {reason}.") from error
        raise UsageError(
            f'No {called} "{name}": it is neither a folder nor a model that could be fetched '
            f"from the hub ({type(error).__name__}: {reason})."
        ) from error
    except Exception as error:  # safetensors and pickle errors have no common base
        reason = reason_of(error, name)
        raise De3Error(f"The weights of {name} could not be read: {reason}.") from error
    return model, info


def from_config(loader: Any, config: Any) -> Any:
    """`loader.from_config(config)`: a model without weights, and without third-party code."""
    check_sizes(config.to_dict(), "The model's config")
    return loader.from_config(config, trust_remote_code=False)


def resolved_source(source: str) -> str:
    """The folder behind `demo`, a name that works without a hub; every other source is its own."""
    if source == DEMO_BACKBONE and not Path(source).exists():
        return str(minilm_folder())
    return source


def reason_of(error: BaseException, source: str) -> str:
    """Why a source could not be read, in a line; about a folder here no word of the network."""
    lines = str(error).strip().splitlines()
    reason = printable(lines[0])[:300].rstrip(".") if lines else type(error).__name__
    folder = Path(source)
    if folder.is_dir() and any(mark in str(error) for mark in OF_THE_HUB):
        found = cut_list(sorted(item.name for item in folder.iterdir())) or "nothing"
        return f"files that it needs are missing (found: {found})"
    return reason


def _check_declarations(source: str, trusted: bool) -> None:
    """Reads what a source says of itself before any library acts on it."""
    for name in DECLARATIONS:
        path = _declaration(source, name)
        if path is None:
            continue
        config = read_json(path, "Copy or download it again.")
        check_sizes(config, str(path))
        for key in ("attn_implementation", "_attn_implementation", "_attn_implementation_internal"):
            if not trusted and "/" in str(config.get(key) or ""):
                raise UsageError(
                    f'{path} asks for the attention code "{config[key]}" from the hub, which is '
                    f'third-party code and is not run. Remove "{key}" from it.'
                )
        if name == "config.json":
            _check_weights(Path(source), config)
    for name in TOKENIZER_FILES:
        path = Path(source) / name
        if path.is_file():
            check_limit("tokenizer", path.stat().st_size, str(path))


def _declaration(source: str, name: str) -> Path | None:
    """The file of that name in a folder, or as the hub has it; None where there is none."""
    if Path(source).is_dir():
        path = Path(source) / name
        return path if path.is_file() else None
    try:
        found = cached_file(source, name, _raise_exceptions_for_missing_entries=False)
    except Exception:  # not to be had: the loader says so, and why
        return None
    return None if found is None else Path(found)


def _check_weights(folder: Path, config: Mapping[str, Any]) -> None:
    """A config must not describe many times the parameters that are stored with it.

    Missing weights would be initialised, which could fill the memory before anyone notices.
    """
    stored = sum(path.stat().st_size for kind in WEIGHTS for path in folder.glob(kind))
    promised = _parameters(config)
    check_limit("parameters", promised, f"The model {folder}")
    if stored and promised > stored / SMALLEST + SLACK:
        raise De3Error(
            f"The config in {folder} describes about {promised:,} parameters, but its weights have "
            f"{stored:,} bytes: the two do not belong together. Copy the folder again."
        )


def _parameters(config: Mapping[str, Any]) -> int:
    """About how many parameters an encoder with this config has."""
    parts = [config.get(name) for name in ("backbone_config", "small_config")]
    encoders = [part for part in parts if isinstance(part, Mapping)]
    if encoders:
        return sum(_parameters(part) for part in encoders)
    width = _whole(config, "hidden_size", "dim", "d_model")
    layers = _whole(config, "num_hidden_groups", "num_hidden_layers", "n_layers")
    inside = _whole(config, "intermediate_size", "hidden_dim")
    table = _whole(config, "vocab_size") + _whole(config, "max_position_embeddings")
    return layers * (4 * width * width + 2 * width * inside) + table * min(
        width, _whole(config, "embedding_size") or width
    )


def _whole(config: Mapping[str, Any], *names: str) -> int:
    found = (config.get(name) for name in names)
    return next((max(0, value) for value in found if type(value) is int), 0)


def _foreign_code(source: str) -> UsageError:
    named: list[str] = []
    for name in DECLARATIONS:
        path = _declaration(source, name)
        code = read_json(path).get("auto_map") if path is not None else None
        if code:
            named.append(f"{name} names {code}"[:200])
    brings = f" ({'; '.join(named)})" if named else ""
    return UsageError(
        f"{source} comes with its own Python code{brings}, which is not run. Use an encoder of a "
        "family that transformers knows. If you have read that code and trust it, `de3 train` and "
        "`de3 attach` take --trust-remote-code; models of de3bert never need it."
    )
