"""Routers: certainties in (0, 1) that depend on a row alone, and their sizes."""

from __future__ import annotations

import math

import pytest
import torch
from tests.model.readings import affine, gradient
from torch import Tensor, nn

from de3bert.errors import UsageError
from de3bert.model.routers import ROUTERS, Router

HIDDEN, EXITS, ROWS = 6, 3, 5
EACH = pytest.mark.parametrize("name", ["lte", "policy"])
EACH_EXIT = pytest.mark.parametrize("index", range(EXITS))


def made(name: str) -> Router:
    with torch.random.fork_rng():
        torch.manual_seed(2)
        router = ROUTERS[name](HIDDEN, EXITS, {})
        for parameter in router.parameters():
            nn.init.normal_(parameter, std=0.7)
    return router


def vectors(rows: int = ROWS) -> Tensor:
    return torch.randn(rows, HIDDEN, generator=torch.Generator().manual_seed(4))


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def gelu(value: float) -> float:
    return value * 0.5 * (1 + math.erf(value / math.sqrt(2)))


def slow(name: str, router: Router, vector: list[float], index: int) -> float:
    if name == "lte":
        assert isinstance(router.linear, nn.Linear)
        return sigmoid(affine(router.linear, vector)[0])
    assert isinstance(router.exits, nn.ModuleList)
    network = router.exits[index]
    assert isinstance(network, nn.Sequential)
    return sigmoid(affine(network[2], [gelu(x) for x in affine(network[0], vector)])[0])


def test_the_known_routers() -> None:
    assert tuple(ROUTERS) == ("lte", "policy")
    with pytest.raises(UsageError, match="Unknown router"):
        ROUTERS["oracle"]


@EACH
@EACH_EXIT
def test_it_matches_the_formula_one_number_at_a_time(name: str, index: int) -> None:
    router = made(name)
    expected = [slow(name, router, vector, index) for vector in vectors().tolist()]
    given = router(vectors(), index)
    assert given.shape == (ROWS,)
    torch.testing.assert_close(given, torch.tensor(expected))
    assert bool(((given > 0) & (given < 1)).all())


@EACH
def test_a_row_does_not_see_the_others(name: str) -> None:
    router, pooled = made(name), vectors()
    alone = torch.cat([router(pooled[row : row + 1], 1) for row in range(ROWS)])
    torch.testing.assert_close(router(pooled, 1), alone)


def test_lte_is_one_for_all_exits_and_policies_are_not() -> None:
    assert torch.equal(made("lte")(vectors(), 0), made("lte")(vectors(), 2))
    assert not torch.allclose(made("policy")(vectors(), 0), made("policy")(vectors(), 2))


@EACH
def test_vectors_and_the_exits_own_parameters_learn(name: str) -> None:
    router, pooled = made(name), vectors().requires_grad_()
    router(pooled, 1).sum().backward()
    assert gradient(pooled) > 0
    learning = [gradient(parameter) > 0 for parameter in router.parameters()]
    assert learning == ([True] * 2 if name == "lte" else [False] * 4 + [True] * 4 + [False] * 4)


class AtExit(nn.Module):
    def __init__(self, router: Router, index: int) -> None:
        super().__init__()
        self.router, self.index = router, index

    def forward(self, pooled: Tensor) -> Tensor:
        return self.router(pooled, self.index)


@EACH
def test_it_can_be_traced_for_any_number_of_rows(name: str) -> None:
    module = AtExit(made(name), 1)
    axes = ({0: torch.export.Dim("rows")},)
    traced = torch.export.export(module, (vectors(2),), dynamic_shapes=axes).module()
    torch.testing.assert_close(traced(vectors()), module(vectors()))


@pytest.mark.parametrize(
    ("name", "exits", "expected"),
    [("lte", 11, 769), ("policy", 1, 24_641), ("policy", 12, 295_692)],
)
def test_parameters_are_the_published_ones(name: str, exits: int, expected: int) -> None:
    with torch.device("meta"):
        router = ROUTERS[name](768, exits, {})
    assert sum(parameter.numel() for parameter in router.parameters()) == expected
