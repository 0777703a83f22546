"""Exits on a Hugging Face classifier that is fine-tuned already: no training, no labels.

    python examples/attach_your_model.py CHECKPOINT texts.txt out/

CHECKPOINT is a folder or hub id of AutoModelForSequenceClassification, texts.txt has one text per
line (a few thousand, like those the model will see). The classifier itself is not changed: its last
layer answers as before, and every earlier layer can answer instead where it is sure to agree.
"""

from __future__ import annotations

import sys
from pathlib import Path

import de3bert
from de3bert.runtime.calibrate_folder import calibrate_model


def main(checkpoint: str, lines: str, out: str) -> None:
    texts = [line for line in Path(lines).read_text(encoding="utf-8").splitlines() if line.strip()]
    fitted, fresh = texts[: len(texts) // 2], texts[len(texts) // 2 :]
    de3bert.attach(checkpoint, fitted, out, progress=True)

    # The same answer as full depth for 95 % of texts, promised for others like them.
    from de3bert.data.read import read_table

    rows = read_table({"text": fresh}, need_labels=False)
    point = calibrate_model(
        out, "agree=0.95 confidence=0.9", "safe", table=rows, default=True, family="edr"
    )
    print(f"{point.policy}: {point.measured['layer_speedup']:.2f} times fewer layers")
    print(point.measured["guarantee"]["promise"])

    clf = de3bert.load(out)  # answers at the point `safe` from now on
    for text, answer in zip(fresh[:5], clf.predict(fresh[:5]), strict=True):
        print(f"{answer.label:12} layer {answer.exit_layer:2} of {answer.layers}  {text[:60]}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
