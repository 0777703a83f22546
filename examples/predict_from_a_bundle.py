"""Answer a stream of texts from an exported bundle: onnxruntime and numpy, no torch.

    python examples/predict_from_a_bundle.py BUNDLE [POINT] < texts.txt

BUNDLE is what `de3 export` wrote; POINT one of its operating points, by default its own. A line of
standard input is a text, and a line of output its answer.
"""

from __future__ import annotations

import sys
from collections import Counter

import de3bert


def main(bundle: str, point: str | None = None) -> None:
    clf = de3bert.load(bundle, spin=False)  # other work may need the cores between two texts
    texts = (line.strip() for line in sys.stdin if line.strip())
    left: Counter[int] = Counter()
    for answer in clf.predict_iter(texts, point=point, batch_size=16):
        left[answer.exit_layer] += 1
        print(f"{answer.label}\t{answer.score:.3f}\t{answer.exit_layer}")
    rows, layers = left.total(), sum(layer * count for layer, count in left.items())
    if rows:
        print(f"{rows} texts, {layers / rows:.2f} of {clf.depth} layers each", file=sys.stderr)
    assert "torch" not in sys.modules


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
