"""Hidden words: which are chosen, and how a phase lends the loss what it needs."""

from __future__ import annotations

import pytest
import torch
from tests.conftest import TINY_WORDS

from de3bert.errors import UsageError
from de3bert.model.groups import train_only
from de3bert.objective import Clock
from de3bert.objective.masked_words import IGNORED
from de3bert.training.hook import HOOKS
from de3bert.training.inference import exit_logits
from de3bert.training.masking import Masking
from de3bert.training.rows import collate

SPECIAL = (0, 1, 2, 3, 4)
MASK = TINY_WORDS.index("[MASK]")


@pytest.fixture
def masking(tiny_tokenizer) -> Masking:
    from de3bert.model.tokens import TextEncoder

    return Masking.of(TextEncoder(tiny_tokenizer, 24))


def many() -> tuple[torch.Tensor, torch.Tensor]:
    """A large batch of all words, every fourth row half padding."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(len(TINY_WORDS), (400, 100), generator=generator)
    present = torch.ones_like(ids)
    present[::4, 50:] = 0
    return ids, present


def test_the_masking_knows_its_tokenizer(masking) -> None:
    assert (masking.mask, masking.words) == (MASK, len(TINY_WORDS))
    assert set(masking.special) == set(SPECIAL)


def test_shares_of_words(masking) -> None:
    ids, present = many()
    seen, words = masking(ids, present, torch.Generator().manual_seed(1))
    asked = words != IGNORED
    askable = present.bool() & (ids >= len(SPECIAL))
    assert not (asked & ~askable).any()  # neither padding nor a special token
    share = asked.sum() / askable.sum()
    assert share.item() == pytest.approx(0.15, abs=0.006)
    assert torch.equal(words[asked], ids[asked])
    assert torch.equal(seen[~asked], ids[~asked])  # what is not asked for stays in sight
    hidden = (seen[asked] == MASK).float().mean().item()
    kept = (seen[asked] == ids[asked]).float().mean().item()
    # A word drawn at random may be the mask or the word itself, once in a vocabulary each.
    again = 0.1 / len(TINY_WORDS)
    assert hidden == pytest.approx(0.8 + again, abs=0.02)
    assert kept == pytest.approx(0.1 + again, abs=0.015)
    changed = seen[asked & (seen != MASK) & (seen != ids)]
    assert len(changed.unique()) > 0.9 * len(TINY_WORDS) - 2  # any word may come up


def test_shares_are_those_of_transformers(masking, tiny_tokenizer) -> None:
    from transformers import DataCollatorForLanguageModeling

    ids, present = many()
    never = torch.isin(ids, torch.tensor(SPECIAL)) | ~present.bool()
    collator = DataCollatorForLanguageModeling(tiny_tokenizer)
    collator.generator = torch.Generator().manual_seed(2)
    theirs = collator.torch_mask_tokens(ids.clone(), special_tokens_mask=never)
    ours = masking(ids, present, torch.Generator().manual_seed(1))
    for kind in (
        lambda seen, words: words != IGNORED,
        lambda seen, words: (words != IGNORED) & (seen == MASK),
        lambda seen, words: (words != IGNORED) & (seen == ids),
    ):
        shares = [kind(*each).sum().item() / (~never).sum().item() for each in (ours, theirs)]
        assert shares[0] == pytest.approx(shares[1], abs=0.006)


def test_draws_follow_the_generator_alone(masking) -> None:
    ids, present = many()
    first = masking(ids, present, Clock(4, 9, seed=2).generator(5))
    torch.rand(3)
    again = masking(ids, present, Clock(4, 9, seed=2).generator(5))
    later = masking(ids, present, Clock(5, 9, seed=2).generator(5))
    assert torch.equal(first[0], again[0])
    assert torch.equal(first[1], again[1])
    assert not torch.equal(first[1], later[1])


def test_a_tokenizer_without_a_mask_is_refused(context, monkeypatch) -> None:
    made = context("pd")
    monkeypatch.setattr(made.encoder.tokenizer, "_special_tokens_map", {})
    with pytest.raises(UsageError, match=r"no mask token.*pkd or theseus"):
        HOOKS["masked_words"](made).check()


def begun(made, name: str = "masked_words"):
    """A hook in its phase, and a training batch."""
    phase = next(p for p in _phases(made) if p.hook == name)
    made.model.objective.enter(phase.terms)
    train_only(made.model, phase.trains)
    hook = HOOKS[name](made)
    hook.check()
    hook.before()
    hook.step(Clock(0, 50, seed=3))
    made.model.train()
    return hook, collate(made.encoder, [made.rows[index] for index in range(16)])


def _phases(made):
    from de3bert.methods import METHODS

    return METHODS[made.model.config.method].phases


def watched(made) -> list[dict]:
    """What the objective reads, pass by pass."""
    seen: list[dict] = []
    usual = made.model.objective.forward

    def spy(batch):
        seen.append({**batch.extras, "tokens": batch.tokens, "training": batch.training})
        return usual(batch)

    made.model.objective.forward = spy
    return seen


def test_a_pass_of_training_reads_masked_text(context) -> None:
    made = context("pd")
    hook, batch = begun(made)
    ids: list[torch.Tensor] = []
    usual = made.model.encoder.prepare

    def prepare(input_ids, **rest):
        ids.append(input_ids)
        return usual(input_ids, **rest)

    made.model.encoder.prepare = prepare
    seen = watched(made)
    made.model(**batch)
    masked, words = hook.masking(
        batch["input_ids"], batch["attention_mask"], Clock(0, 50, seed=3).generator(5)
    )
    assert torch.equal(ids[0], masked)
    assert torch.equal(seen[0]["words"], words)
    assert seen[0]["tokens"].shape == (*words.shape, 32)
    made.model(**batch)  # the next pass of the same step hides others
    assert not torch.equal(seen[1]["words"], words)
    hook.step(Clock(0, 50, seed=3))
    made.model(**batch)
    assert torch.equal(seen[2]["words"], words)


def test_evaluation_reads_the_text_as_it_is(context) -> None:
    made = context("pd")
    before = exit_logits(made.model, made.rows, made.encoder)
    begun(made)
    after = exit_logits(made.model.eval(), made.rows, made.encoder)
    torch.testing.assert_close(after, before, atol=1e-5, rtol=0)  # one runs in chunks


def test_nothing_of_the_head_stays(context) -> None:
    made = context("pd")
    names = set(made.model.state_dict())
    hook, _ = begun(made)
    assert len(set(made.model.state_dict()) - names) == 5  # checkpoints of the phase hold it
    hook.after()
    assert set(made.model.state_dict()) == names
    assert not made.model._forward_pre_hooks


def test_gradients_reach_encoder_and_head_but_no_classifier(context) -> None:
    made = context("pd")
    _, batch = begun(made)
    made.model(**batch)["loss"].backward()
    model = made.model
    assert all(weight.grad is not None for weight in model.encoder.parameters())
    assert all(weight.grad is not None for weight in model.objective.parameters())
    assert all(weight.grad is None for weight in model.heads.parameters())


def test_a_fresh_head_is_the_same_whatever_was_drawn_before(context) -> None:
    heads = []
    for skip in (1, 7):
        made = context("pd")
        torch.rand(skip)
        hook, _ = begun(made)
        heads.append(hook.loss.head.state_dict())
    assert all(torch.equal(heads[0][name], heads[1][name]) for name in heads[0])


def test_a_backbone_with_a_head_lends_it(context, masked_backbone) -> None:
    from transformers import AutoModelForMaskedLM

    made = context("pd", backbone=masked_backbone)
    hook, _ = begun(made)
    pretrained = AutoModelForMaskedLM.from_pretrained(masked_backbone)
    states = torch.randn(5, 32)
    torch.testing.assert_close(hook.loss.head(states), pretrained.cls(states))


def test_the_whole_backbone_reads_along(context, masked_backbone) -> None:
    from transformers import AutoModelForMaskedLM

    made = context("distilbert", backbone=masked_backbone)
    hook, batch = begun(made, "masked_teacher")
    seen = watched(made)
    loss = made.model(**batch)["loss"]
    pretrained = AutoModelForMaskedLM.from_pretrained(masked_backbone).eval()
    masked, words = hook.masking(
        batch["input_ids"], batch["attention_mask"], Clock(0, 50, seed=3).generator(5)
    )
    read = {**{k: v for k, v in batch.items() if k != "labels"}, "input_ids": masked}
    with torch.no_grad():
        states = pretrained.bert(**read)[0]
        theirs = pretrained.cls(states)
    present = batch["attention_mask"].bool()
    torch.testing.assert_close(seen[0]["teacher_tokens"][present], states[present])
    # The three losses by hand, at this one batch.
    tokens = seen[0]["tokens"]
    ours = hook.loss.head(tokens.flatten(0, 1)).unflatten(0, tokens.shape[:2])
    softened = torch.nn.functional.kl_div(
        (ours[present] / 2).log_softmax(-1), (theirs[present] / 2).softmax(-1),
        reduction="batchmean",
    )  # fmt: skip
    guessed = torch.nn.functional.cross_entropy(ours.flatten(0, 1), words.flatten())
    ones = torch.ones(int(present.sum()))
    turned = torch.nn.functional.cosine_embedding_loss(tokens[present], states[present], ones)
    torch.testing.assert_close(loss, 5 * 4 * softened + 2 * guessed + turned)
    loss.backward()
    assert all(weight.grad is None for weight in hook.teacher.parameters())
    assert all(weight.grad is None for weight in hook.teachers_head.parameters())
    names = set(made.model.state_dict())
    hook.after()
    assert len(names - set(made.model.state_dict())) == 5
    assert hook.knowledge.heads == (None, None)


def test_a_backbone_without_a_head_cannot_teach(context) -> None:
    made = context("distilbert")
    with pytest.raises(
        UsageError, match=r"no trained masked-language-modelling head.*methods pd, pkd and theseus"
    ):
        HOOKS["masked_teacher"](made).check()
