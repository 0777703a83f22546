"""Answer a stream of texts from one ONNX file: onnxruntime and tokenizers, nothing of de3bert.

    python examples/run_one_file.py MODEL.onnx [POINT] < texts.txt

MODEL.onnx is what `de3 export MODEL --one-file MODEL.onnx` wrote, with tokenizer.json beside it;
POINT is one of its points, by default its own. A line of standard input is a text, or two with a
tab between them for a model of text pairs. A line of output is its answer: label, probability and
exit layer.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

NUMBERS = {"threshold": "float32", "lambda": "float32", "patience": "int64", "max_layers": "int64"}


def main(path: str, point: str | None = None) -> None:
    session = onnxruntime.InferenceSession(path)
    told = session.get_modelmeta().custom_metadata_map
    points = json.loads(told["de3bert.points"])
    point = point or told["de3bert.default_point"]
    if point not in points:
        raise SystemExit(f'There is no point "{point}"; there are: {", ".join(points)}.')
    rule = {name: np.array(value, NUMBERS[name]) for name, value in points[point].items()}
    labels = json.loads(told["de3bert.labels"])
    tokenizer = Tokenizer.from_file(str(Path(path).with_name("tokenizer.json")))
    tokenizer.no_padding()  # one text at a time; how long it may be is in the file
    read = {each.name for each in session.get_inputs()}
    for line in sys.stdin:
        if not line.strip():
            continue
        made = tokenizer.encode(*line.rstrip("\n").split("\t"))
        tokens = {"input_ids": made.ids, "token_type_ids": made.type_ids}
        feeds = {name: np.array([ids]) for name, ids in tokens.items() if name in read}
        logits, layer = session.run(("logits", "exit_layer"), {**feeds, **rule})
        shares = np.exp(logits[0] - logits.max())
        best = int(shares.argmax())
        print(f"{labels[best]}\t{shares[best] / shares.sum():.4f}\t{layer}")


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
