"""Is a name that is no folder here a model of ours on the hub? Asked once, and without torch.

The libraries below would ask for one file after another, and each of them again and again where
there is no network: a mistyped folder would cost a minute.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from de3bert.errors import De3Error, UsageError
from de3bert.files import read_json
from de3bert.printable import printable

__all__ = ["check_hub", "hub_config"]

PATIENCE = 10.0  # seconds for an answer


def check_hub(source: str, wanted: str) -> None:
    """UsageError unless the hub, or its cache here, has a model of the type wanted."""
    try:
        from huggingface_hub import HfApi, try_to_load_from_cache
        from huggingface_hub.errors import RepositoryNotFoundError
    except ImportError as error:
        raise De3Error(
            f'There is no folder "{printable(source)}" here, and fetching models from the hub '
            'needs: pip install "de3bert[train]"'
        ) from error
    cached = try_to_load_from_cache(source, "config.json")
    if isinstance(cached, str):
        found = read_json(Path(cached)).get("model_type")
    else:
        try:
            known = HfApi().model_info(source, timeout=PATIENCE)
        except RepositoryNotFoundError as error:
            raise _absent(
                source, "the hub has none either (or none that you can access)"
            ) from error
        except Exception as error:  # a kind for every way of having no network
            raise _absent(source, "the hub cannot be reached now") from error
        found = (known.config or {}).get("model_type", wanted)
    if found != wanted:
        raise UsageError(
            f'{source} on the hub is a "{printable(str(found))[:60]}" model, which has no exits. '
            f"Put exits on it with: de3 train --backbone {source} --data FILE --out DIR"
        )


def hub_config(source: str) -> dict[str, Any] | None:
    """What is known of the config of a model on the hub; None when it cannot be asked."""
    try:
        from huggingface_hub import HfApi, try_to_load_from_cache

        cached = try_to_load_from_cache(source, "config.json")
        if isinstance(cached, str):
            return read_json(Path(cached))
        return HfApi().model_info(source, timeout=PATIENCE).config
    except Exception:  # a kind for every way of having no network
        return None


def _absent(source: str, why: str) -> UsageError:
    return UsageError(
        f'No model "{printable(source)}": there is no folder of that name in '
        f"{printable(str(Path.cwd()))}, and {why}."
    )
