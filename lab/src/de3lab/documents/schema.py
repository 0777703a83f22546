"""The JSON schemas of the laboratory's documents, as `docs/schema` has them.

python -m de3lab.documents.schema docs/schema
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from de3bert.files import write_json
from de3lab.documents import (
    DOCUMENTS,
    AnalysisResult,
    Document,
    Latency,
    RunRecord,
    StudyResult,
)

__all__ = ["SCHEMAS", "schema_of", "write_schemas"]

SCHEMAS: dict[type[Document], str] = {
    RunRecord: "run.json",
    StudyResult: "study.json",
    Latency: "latency.json",
    AnalysisResult: "analysis.json",
}


def schema_of(kind: type[Document]) -> dict[str, Any]:
    """The schema of one kind of document, with the format and the versions it is read in."""
    schema = kind.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["properties"]["format"] |= {"const": kind.FORMAT}
    schema["properties"]["version"] |= {"minimum": 1, "maximum": kind.VERSION}
    return schema


def write_schemas(folder: Path) -> list[Path]:
    """Writes all of them; gives their paths."""
    written = [folder / SCHEMAS[kind] for kind in DOCUMENTS]
    for kind, path in zip(DOCUMENTS, written, strict=True):
        write_json(path, schema_of(kind))
    return written


if __name__ == "__main__":
    for path in write_schemas(Path(sys.argv[1])):
        print(path)
