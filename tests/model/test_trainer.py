"""The plain Hugging Face Trainer trains the model."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.model.families import SIZES
from torch import Tensor
from transformers import BertConfig, BertModel, Trainer, TrainingArguments

from de3bert.model import EarlyExitForSequenceClassification

Row = dict[str, Tensor]


def rows(count: int) -> list[Row]:
    """Random texts; the first token tells the label."""
    ids = torch.randint(5, 60, (count, 6), generator=torch.Generator().manual_seed(3))
    labels = torch.arange(count) % 2
    ids[:, 0] = 5 + labels
    return [
        {"input_ids": one, "attention_mask": torch.ones_like(one), "labels": label}
        for one, label in zip(ids, labels, strict=True)
    ]


def build(method: str) -> EarlyExitForSequenceClassification:
    torch.manual_seed(2)
    config = BertConfig(**SIZES, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    return EarlyExitForSequenceClassification.from_backbone(
        BertModel(config), num_labels=2, method=method
    )


def train(
    model: EarlyExitForSequenceClassification, data: list[Row], folder: Path, **settings: object
) -> Trainer:
    arguments = TrainingArguments(
        output_dir=str(folder),
        use_cpu=True,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        seed=1,
        **settings,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=data, eval_dataset=data)
    trainer.train()
    return trainer


def one_step(batch: int, accumulation: int, folder: Path) -> dict[str, Tensor]:
    """The weights after one step of plain SGD over the same 8 rows."""
    model = build("joint-entropy")
    train(
        model,
        rows(8),
        folder,
        optim="sgd",
        learning_rate=1.0,
        lr_scheduler_type="constant",
        max_grad_norm=0.0,
        max_steps=1,
        per_device_train_batch_size=batch,
        gradient_accumulation_steps=accumulation,
    )
    return {name: weight.detach() for name, weight in model.named_parameters()}


def test_accumulating_gradients_is_the_same_as_one_large_batch(tmp_path: Path) -> None:
    start = {name: weight.clone() for name, weight in build("joint-entropy").named_parameters()}
    assert EarlyExitForSequenceClassification.accepts_loss_kwargs is False
    whole, parts = one_step(8, 1, tmp_path), one_step(2, 4, tmp_path)
    moved = sum((whole[name] - start[name]).abs().sum() for name in start)
    assert moved > 1
    for name, weight in whole.items():
        torch.testing.assert_close(parts[name], weight, atol=1e-5, rtol=1e-4, msg=name)


def test_it_is_the_flag_that_makes_them_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_class = EarlyExitForSequenceClassification
    forward = model_class.forward

    def with_count(
        self: EarlyExitForSequenceClassification,
        input_ids: Tensor,
        attention_mask: Tensor,
        labels: Tensor,
        num_items_in_batch: Tensor | None = None,
    ) -> object:
        return forward(self, input_ids, attention_mask, labels=labels)

    monkeypatch.setattr(model_class, "accepts_loss_kwargs", True)
    monkeypatch.setattr(model_class, "forward", with_count)
    whole, parts = one_step(8, 1, tmp_path), one_step(2, 4, tmp_path)
    assert any(not torch.allclose(whole[n], parts[n], atol=1e-3) for n in whole)


def test_a_short_training_learns_and_can_be_evaluated(tmp_path: Path) -> None:
    model, data = build("de3"), rows(32)
    trainer = train(
        model,
        data,
        tmp_path,
        learning_rate=5e-3,
        num_train_epochs=8,
        per_device_train_batch_size=8,
        per_device_eval_batch_size=5,
    )
    found = trainer.predict(data)
    logits, exit_logits, distances = found.predictions
    assert logits.shape == (32, 2)
    assert exit_logits.shape == (32, 3, 2)  # batches of 5 and a rest: joined along rows
    assert distances.shape == (32, 2, 2)
    labels = found.label_ids
    assert ((exit_logits.argmax(-1) == labels[:, None]).mean(0) == 1).all()
    assert model.prototypes.counts.tolist() == [128, 128]
    nearest = distances.argmin(-1)
    assert (nearest == labels[:, None]).mean() > 0.9
