"""Every family: our loop over layers gives what the backbone itself gives."""

from __future__ import annotations

import copy
import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from tests.model.families import FAMILIES, FOUND, SIZES, SPECIAL, TESTED, batch, tiny
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, BertConfig

from de3bert.errors import De3Error, UsageError
from de3bert.model import EarlyExitForSequenceClassification

every_family = pytest.mark.parametrize("family", FAMILIES)


def build(family: str) -> EarlyExitForSequenceClassification:
    with torch.random.fork_rng():
        torch.manual_seed(5)
        return EarlyExitForSequenceClassification.from_backbone(tiny(family), num_labels=3)


def states(model: EarlyExitForSequenceClassification, inputs: dict[str, Tensor]) -> list[Tensor]:
    """The embedded batch and the states after every layer."""
    prepared = model.encoder.prepare(**inputs)
    found = [prepared.embedded]
    for number in range(1, model.encoder.depth + 1):
        found.append(model.encoder.layer(prepared, number, found[-1]))
    return found


@every_family
def test_the_loop_gives_the_backbones_own_states_bit_for_bit(family: str) -> None:
    backbone, inputs = tiny(family), batch()
    with torch.no_grad():
        own = backbone(**inputs, output_hidden_states=True)
        model = EarlyExitForSequenceClassification.from_backbone(backbone, num_labels=2)
        ours = states(model, inputs)
    last = model.encoder.readable(ours[-1])
    assert last.shape == own.last_hidden_state.shape
    assert torch.equal(last, own.last_hidden_state)
    assert len(own.hidden_states) == len(ours) == model.encoder.depth + 1
    # The last of the backbone's own list is normed on pre-norm families; compared above.
    for number, (mine, its) in enumerate(zip(ours[:-1], own.hidden_states[:-1], strict=True)):
        assert torch.equal(mine, its), f"after layer {number}"
    for before, after in itertools.pairwise(ours):
        assert not torch.allclose(before, after, atol=1e-3)  # no layer was skipped


@every_family
def test_rows_do_not_depend_on_their_neighbours_or_padding(family: str) -> None:
    model, inputs = build(family), batch()
    with torch.no_grad():
        together = model(**inputs).exit_logits
        assert together.shape == (3, model.encoder.depth, 3)
        for row, length in enumerate((7, 4, 2)):
            alone = {name: tensor[row : row + 1, :length] for name, tensor in inputs.items()}
            torch.testing.assert_close(
                model(**alone).exit_logits[0], together[row], atol=1e-5, rtol=1e-5
            )
    assert not torch.allclose(together[0], together[1])
    assert not torch.allclose(together[1], together[2])


@every_family
def test_a_saved_model_comes_back_the_same(family: str, tmp_path: Path) -> None:
    model, inputs = build(family), batch()
    model.train()
    model(**inputs, labels=torch.tensor([0, 1, 2]))  # sets the prototypes
    model.eval().save_pretrained(tmp_path)
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert type(again) is EarlyExitForSequenceClassification
    with torch.no_grad():
        before, after = model(**inputs), again(**inputs)
    assert before.distances.isfinite().all()
    assert torch.equal(before.exit_logits, after.exit_logits)
    assert torch.equal(before.distances, after.distances)
    assert again.encoder.layout == model.encoder.layout


@every_family
def test_the_gradient_reaches_every_layer(family: str) -> None:
    model = build(family).train()
    model(**batch(), labels=torch.tensor([0, 1, 2])).loss.backward()
    for number, layer in enumerate(model.encoder.layers, 1):
        reached = [p for p in layer.parameters() if p.grad is not None and p.grad.abs().sum() > 0]
        assert reached, f"layer {number}"
    unused = [name for name, p in model.named_parameters() if p.requires_grad and p.grad is None]
    assert not unused  # DDP refuses to train around them


# The layers of these know no checkpointing in transformers either.
NOT_CHECKPOINTED = {"albert-1-group", "albert-2-groups", "mpnet"}


@pytest.mark.parametrize("family", [name for name in FAMILIES if name not in NOT_CHECKPOINTED])
def test_checkpointing_saves_memory_and_changes_nothing(family: str) -> None:
    def gradients(checkpointing: bool) -> tuple[Tensor, dict[str, Tensor]]:
        model = build(family).train()
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
        if checkpointing:
            model.gradient_checkpointing_enable()
            assert model.is_gradient_checkpointing
        loss = model(**batch(), labels=torch.tensor([0, 1, 2])).loss
        loss.backward()
        return loss, {name: p.grad for name, p in model.named_parameters()}

    loss, plain = gradients(False)
    again, checkpointed = gradients(True)
    torch.testing.assert_close(loss, again)
    for name, gradient in plain.items():
        torch.testing.assert_close(gradient, checkpointed[name], msg=name)


@pytest.mark.parametrize("family", ["bert", "modernbert", "deberta-v2"])
@pytest.mark.parametrize("switch", ["output_hidden_states", "output_attentions"])
def test_output_switches_in_the_backbone_config_do_no_harm(family: str, switch: str) -> None:
    plain = EarlyExitForSequenceClassification.from_backbone(tiny(family), num_labels=2)
    backbone = tiny(family)
    backbone.set_attn_implementation("eager")
    setattr(backbone.config, switch, True)
    model = EarlyExitForSequenceClassification.from_backbone(backbone, num_labels=2)
    with torch.no_grad():
        expected, found = states(plain, batch())[-1], states(model, batch())[-1]
    seen = batch()["attention_mask"].bool()
    torch.testing.assert_close(found[seen], expected[seen], atol=1e-5, rtol=1e-4)


def test_copies_and_pickles_are_independent_and_equal() -> None:
    model, inputs = build("modernbert"), batch()
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        recorder = again.encoder.backbone.layers[1]
        assert recorder.layer is again.encoder.layers[1]
        assert recorder.layer is not model.encoder.layers[1]
        assert recorder.attention_type == model.encoder.layers[1].attention_type
        with torch.no_grad():
            assert torch.equal(again(**inputs).exit_logits, model(**inputs).exit_logits)
            next(again.encoder.layers.parameters()).zero_()
            assert not torch.equal(again(**inputs).exit_logits, model(**inputs).exit_logits)


def test_threads_do_not_mix_their_batches() -> None:
    model = build("modernbert")
    generator = torch.Generator().manual_seed(1)
    batches = [torch.randint(5, 60, (2, 3 + i % 5), generator=generator) for i in range(24)]

    def logits(ids: Tensor) -> Tensor:
        with torch.no_grad():
            return model(ids).exit_logits

    expected = [logits(ids) for ids in batches]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(logits, batches))
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)


def test_the_layout_of_an_unknown_family_is_found() -> None:
    assert build("eurobert").encoder.layout.final_norm == "norm"
    assert build("rembert").encoder.layout.tuple_output
    assert not build("nomic-bert").encoder.layout.tuple_output
    assert set(FOUND).isdisjoint(TESTED)


REFUSED = {
    "t5": ("encoder-decoder", {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2}),
    "bart": ("encoder-decoder", {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2}),
    "gpt2": ("reads one way", {"n_embd": 32, "n_layer": 2, "n_head": 4}),
    "funnel": ("shortens", {"d_model": 32, "block_sizes": [1, 1], "n_head": 4, "d_head": 8}),
    "longformer": ("shortens", {**SIZES, "attention_window": 4}),
    "xlnet": ("two streams", {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64}),
    # No name gives these two away: they are seen to read one way.
    "opt": ("does not see the second", {**SIZES, "ffn_dim": 64, "word_embed_proj_dim": 32}),
    "bloom": ("does not see the second", {"hidden_size": 32, "n_layer": 3, "n_head": 4}),
}


@pytest.mark.parametrize("family", REFUSED)
def test_families_that_cannot_carry_exits_are_refused_with_the_reason(family: str) -> None:
    reason, sizes = REFUSED[family]
    config = AutoConfig.for_model(family, **{"vocab_size": 60, **SPECIAL, **sizes})
    config.architectures = ["FunnelModel"] if family == "funnel" else None
    backbone = AutoModel.from_config(config)
    weights = {name: tensor.clone() for name, tensor in backbone.state_dict().items()}
    with pytest.raises(UsageError, match=reason) as caught:
        EarlyExitForSequenceClassification.from_backbone(backbone, num_labels=2)
    assert f'"{family}"' in str(caught.value)
    assert "Tested families: albert, bert" in str(caught.value)
    assert backbone.state_dict().keys() == weights.keys()  # and left in one piece


class Unknown(nn.Module):
    """Two stacks of the right length: which one is it?"""

    def __init__(self) -> None:
        super().__init__()
        self.config = BertConfig(**SIZES)
        self.config.model_type = "mystery"
        self.left = nn.ModuleList(nn.Linear(32, 32) for _ in range(3))
        self.right = nn.ModuleList(nn.Linear(32, 32) for _ in range(3))


def test_a_module_without_a_findable_stack_is_refused() -> None:
    with pytest.raises(UsageError, match=r'"mystery" is unknown .*\(candidates: left, right\)'):
        EarlyExitForSequenceClassification.from_backbone(Unknown(), num_labels=2)
    module = Unknown()
    del module.left, module.right
    with pytest.raises(UsageError, match="candidates: none"):
        EarlyExitForSequenceClassification.from_backbone(module, num_labels=2)
    with pytest.raises(UsageError, match="A Linear cannot be a backbone"):
        EarlyExitForSequenceClassification.from_backbone(nn.Linear(2, 2), num_labels=2)


def test_a_backbone_that_does_more_than_its_layers_is_refused() -> None:
    # Its norm after the last layer has a name that is not looked for.
    sizes = {**SIZES, **SPECIAL}
    backbone = AutoModel.from_config(AutoConfig.for_model("roberta-prelayernorm", **sizes))
    with pytest.raises(De3Error, match="does more than run its layers"):
        EarlyExitForSequenceClassification.from_backbone(backbone, num_labels=2)
    # Its forward insists on a pooler.
    backbone = AutoModel.from_config(AutoConfig.for_model("layoutlm", **sizes))
    with pytest.raises(De3Error, match="does not run without its layers"):
        EarlyExitForSequenceClassification.from_backbone(backbone, num_labels=2)
