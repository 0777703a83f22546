"""The JSON schemas of what the product stores, as `docs/schema` has them beside the laboratory's.

python docs/generate/schemas.py docs/schema
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from de3bert.exits.points import VERSION
from de3bert.exits.stored_point import StoredPoint
from de3bert.files import write_json
from de3bert.runtime.manifest import SCHEMA, Manifest

__all__ = ["schemas", "write_schemas"]

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schemas() -> dict[str, dict[str, Any]]:
    """File name -> schema: of a point in `config.json`, and of a bundle's `manifest.json`."""
    point, bundle = StoredPoint.model_json_schema(), Manifest.model_json_schema()
    point["properties"]["version"] |= {"maximum": VERSION}
    bundle["properties"] |= {"schema": {"const": SCHEMA, "title": "Schema"}}
    bundle["required"] = ["schema", *bundle["required"]]
    return {
        "point.json": {**point, "$schema": DIALECT},
        "bundle.json": {**bundle, "$schema": DIALECT},
    }


def write_schemas(folder: Path) -> list[Path]:
    """Writes all of them; gives their paths."""
    made = schemas()
    for name, schema in made.items():
        write_json(folder / name, schema)
    return [folder / name for name in made]


if __name__ == "__main__":
    for path in write_schemas(Path(sys.argv[1])):
        print(path)
