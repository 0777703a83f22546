"""How much longer does DE3 train than plain fine-tuning of the same backbone?

    python benchmarks/training.py [--rounds 12] [--json]

Both models take the same batches of real reviews (32 rows, as the demo trains), one optimiser step
each in turn, so that noise of the machine hits both alike. The ratio is that of the median step
times, with a bootstrap interval over rounds. The paper says about 1.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime

import numpy as np
import torch

from de3bert.bench.timing import alternate, bootstrap
from de3bert.data.packaged import minilm_folder, short_reviews
from de3bert.machine import machine, versions
from de3bert.model import EarlyExitForSequenceClassification
from de3bert.model.tokens import TextEncoder, load_tokenizer

ROWS = 32
WARM_UP = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(0)
    batches = read_batches(options.rounds + WARM_UP)
    steps = {method: stepper(method) for method in ("full", "de3")}
    jobs = {method: lambda item, step=step: step(batches[item]) for method, step in steps.items()}
    times = alternate(jobs, len(batches), 1, pools=dict.fromkeys(jobs, "torch"))
    kept = {method: seen[WARM_UP:] for method, seen in times.items()}  # (batches, 1)
    found = bootstrap(kept["de3"], kept["full"], np.median, seed=3)
    document = {
        "schema": 1,
        "benchmark": "training step, de3 against plain fine-tuning",
        "ratio": found.value,
        "interval": [found.low, found.high],
        "median_seconds": {method: float(np.median(seen)) for method, seen in kept.items()},
        "rounds": options.rounds,
        "command": " ".join(["python", *sys.argv]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": 0,
        "machine": machine(),
        "versions": versions(),
    }
    if options.json:
        print(json.dumps(document, indent=2))
        return
    low, high = document["interval"]
    print(f"de3 / full, time of a training step: {document['ratio']:.3f} ({low:.3f} to {high:.3f})")
    print("median seconds:", document["median_seconds"], "on", document["machine"])


def read_batches(count: int) -> list[dict[str, torch.Tensor]]:
    table = short_reviews()
    encoder = TextEncoder(load_tokenizer(str(minilm_folder())), 128)
    order = np.random.default_rng(0).permutation(len(table))[: count * ROWS]
    chosen = table.take(order.tolist())
    rows = sorted(encoder(chosen.inputs()).rows, key=lambda row: len(row["input_ids"]))
    batches = [encoder.pad(rows[i : i + ROWS]) for i in range(0, len(rows), ROWS)]
    for index in np.random.default_rng(1).permutation(len(batches)):
        batches[index]["labels"] = torch.randint(0, 2, (ROWS,))
    return [batches[index] for index in np.random.default_rng(2).permutation(len(batches))]


def stepper(method: str):  # type: ignore[no-untyped-def]
    model = EarlyExitForSequenceClassification.from_backbone(
        minilm_folder(), num_labels=2, method=method
    ).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

    def step(batch: dict[str, torch.Tensor]) -> None:
        model(**batch).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()

    return step


if __name__ == "__main__":
    main()
