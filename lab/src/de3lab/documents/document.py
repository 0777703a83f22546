"""A stored document: read and checked, written unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from de3bert.errors import De3Error
from de3bert.files import read_json, write_json

__all__ = ["Document", "Part"]


class Part(BaseModel):
    """A part of a document. Fields that a later version may add are kept."""

    model_config = ConfigDict(extra="allow", frozen=True)


class Document(Part):
    """A JSON file with a `format` and a `version`.

    Attributes:
        FORMAT: what `format` must say.
        VERSION: the newest version that is understood; every older one is.
        WHAT: what the file is, in words.
    """

    FORMAT: ClassVar[str]
    VERSION: ClassVar[int] = 1
    WHAT: ClassVar[str]

    format: str
    version: int

    @classmethod
    def made(cls, **parts: Any) -> Self:
        """A new document of the newest version."""
        return cls(format=cls.FORMAT, version=cls.VERSION, **parts)

    @classmethod
    def read(cls, path: Path) -> Self:
        """A stored document; De3Error when it is damaged, another one or of a newer version."""
        document = read_json(path, "Remove it and make it again.")
        if document.get("format") != cls.FORMAT:
            raise De3Error(f"{path} is not {cls.WHAT}. Remove it and make it again.")
        if not isinstance(document.get("version", 0), int):
            raise De3Error(f"{path} is not {cls.WHAT}: its version is not a number. Make it again.")
        if document.get("version", 0) > cls.VERSION:
            raise De3Error(
                f"{path} has version {document['version']}; this version of de3bert reads up to "
                f"{cls.VERSION}. Update de3bert."
            )
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise De3Error(
                f"{path} is damaged: {where}: {first['msg']}. Remove it and make it again."
            ) from error

    def to_json(self) -> dict[str, Any]:
        """What is written: all that was given, defaults left out."""
        return self.model_dump(mode="json", exclude_unset=True)

    def write(self, path: Path) -> None:
        write_json(path, self.to_json())
