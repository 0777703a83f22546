"""Models of ours on the hub: is there one of that name, and the folder here that holds its files.

Whether there is one is asked once, and without torch. The libraries below would ask for one file
after another, and each of them again and again where there is no network: a mistyped folder would
cost a minute.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from de3bert.errors import De3Error, UsageError
from de3bert.files import read_json
from de3bert.printable import printable
from de3bert.runtime.arguments import checked_cache, checked_revision, checked_token

__all__ = ["Fetching", "check_hub", "fetched", "hub_config", "no_exits"]

PATIENCE = 10.0  # seconds for an answer
# Models and bundles lie side by side in one folder; of what is never read nothing is fetched.
IGNORED = ["*/*", "*.py", "*.pt", "*.pth", "*.pkl", "pytorch_model*.bin"]


@dataclass(frozen=True)
class Fetching:
    """How a model is fetched from the hub, with the meaning that `from_pretrained` gives it.

    Attributes:
        token: never shown, and part of no `Opening`, so that it never travels.
    """

    revision: str | None = None
    token: str | bool | None = field(default=None, repr=False)
    cache_dir: str | None = None

    @classmethod
    def checked(cls, revision: object, token: object, cache_dir: object) -> Fetching:
        return cls(checked_revision(revision), checked_token(token), checked_cache(cache_dir))

    @property
    def place(self) -> dict[str, Any]:
        """What says where in the cache a file is."""
        return {"revision": self.revision, "cache_dir": self.cache_dir}

    def check_folder(self, folder: str) -> None:
        """UsageError for what would be about another model than the one in the folder.

        A token and a cache change nothing there: who passes them with every model may do so.
        """
        if self.revision is not None:
            raise UsageError(
                f"{printable(folder)} is a folder here, which has no revisions; got "
                f'revision="{printable(self.revision)}". Leave it out, or name a model on the hub.'
            )


def fetched(source: str, wanted: str, how: Fetching) -> Path:
    """The folder in the hub's cache with all files of a model or bundle, as new as can be had.

    Where the hub cannot be reached it is what was fetched before.
    """
    check_hub(source, wanted, how)
    from huggingface_hub import snapshot_download

    try:
        return Path(
            snapshot_download(
                source,
                **how.place,
                token=how.token,
                etag_timeout=PATIENCE,
                ignore_patterns=IGNORED,
            )
        )
    except Exception as error:  # a kind for every way of having no network, or no room
        reason = printable((str(error).strip().splitlines() or [type(error).__name__])[0])[:300]
        raise De3Error(
            f'"{printable(source)}" could not be fetched from the hub: {reason.rstrip(".")}.'
        ) from error


def check_hub(source: str, wanted: str, how: Fetching) -> None:
    """UsageError unless the hub, or its cache here, has a model of the type wanted."""
    try:
        from huggingface_hub import HfApi, try_to_load_from_cache
        from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError
    except ImportError as error:
        raise De3Error(
            f'There is no folder "{printable(source)}" here, and fetching models from the hub '
            'needs: pip install "de3bert[train]"'
        ) from error
    cached = try_to_load_from_cache(source, "config.json", **how.place)
    if isinstance(cached, str):
        found = read_json(Path(cached)).get("model_type")
    else:
        try:
            known = HfApi(token=how.token).model_info(
                source, revision=how.revision, timeout=PATIENCE
            )
        except RevisionNotFoundError as error:
            raise _absent(source, how, "the hub has no such revision of it") from error
        except RepositoryNotFoundError as error:
            why = "the hub has none that you can access (private and gated ones need a token)"
            raise _absent(source, how, why) from error
        except Exception as error:  # a kind for every way of having no network
            raise _absent(source, how, "the hub cannot be reached now") from error
        found = (known.config or {}).get("model_type", wanted)
    if found != wanted:
        raise no_exits(f"{source} on the hub is", found, source)


def no_exits(is_a: str, model_type: object, source: str) -> UsageError:
    """The error for a model that is sound, and not one of ours."""
    return UsageError(
        f'{is_a} a "{printable(str(model_type))[:60]}" model, which has no exits. '
        "If it is a fine-tuned classifier, put exits on it, without training, with: "
        f"de3 attach {source} --data FILE --out DIR\n"
        f"If it is an encoder, train it with exits: de3 train --backbone {source} --data FILE "
        "--out DIR"
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


def _absent(source: str, how: Fetching, why: str) -> UsageError:
    asked = "" if how.revision is None else f' (revision "{printable(how.revision)}")'
    return UsageError(
        f'No model "{printable(source)}"{asked}: there is no folder of that name in '
        f"{printable(str(Path.cwd()))}, and {why}."
    )
