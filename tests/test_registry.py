import pytest

from de3bert.errors import UsageError
from de3bert.registry import Registry, unknown


@pytest.fixture
def signals():
    registry: Registry[int] = Registry("signal")
    registry.add("max_probability", 2)
    registry.add("entropy", 1)
    return registry


def test_parts_are_found_by_name_and_listed_in_order(signals):
    assert signals["entropy"] == 1
    assert list(signals) == ["entropy", "max_probability"]
    assert (len(signals), "entropy" in signals, "odd" in signals) == (2, True, False)


def test_the_decorator_gives_the_part_back(signals):
    @signals.register("energy")
    def energy():
        return 3

    assert energy() == 3
    assert signals["energy"] is energy


def test_a_name_is_taken_once(signals):
    with pytest.raises(ValueError, match=r"signal 'entropy' is registered twice"):
        signals.add("entropy", 5)
    assert signals["entropy"] == 1


@pytest.mark.parametrize("name", ["Entropy", "", "1st", "two words", "a.b"])
def test_names_are_lower_case(signals, name):
    with pytest.raises(ValueError, match="lower case"):
        signals.add(name, 5)


def test_an_unknown_name_suggests_the_nearest(signals):
    with pytest.raises(UsageError) as caught:
        signals["entropi"]
    assert str(caught.value) == (
        'Unknown signal "entropi". Did you mean "entropy"?\nAvailable: entropy, max_probability.'
    )
    assert caught.value.exit_code == 2


def test_an_unknown_name_far_from_all_others(signals):
    with pytest.raises(UsageError) as caught:
        signals["xyz"]
    assert "Did you mean" not in str(caught.value)
    with pytest.raises(UsageError, match="Available: none"):
        Registry("rule")["xyz"]


def test_long_names_and_long_lists_are_cut():
    message = unknown("class", "x" * 5000 + "\x1b", [f"class {number}" for number in range(900)])
    assert "and 850 more" in message
    assert len(message) < 1200
    assert "\x1b" not in unknown("class", "\x1b[2J", [])
