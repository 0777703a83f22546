"""The one loop that times: who runs when, and what is counted."""

from __future__ import annotations

from de3bert.runtime.timing import in_turn


def test_all_jobs_take_an_item_before_the_next_and_only_they_are_timed():
    clock, ran = [0.0], []

    def job(name: str, seconds: float):
        def run(item: int) -> None:
            ran.append((name, item))
            clock[0] += seconds * (item + 1)

        return run

    def before(name: str) -> None:
        clock[0] += 100.0  # a wait, which is nobody's time

    times = in_turn(
        {"a": job("a", 1.0), "b": job("b", 3.0)}, 2, 2, before=before, now=lambda: clock[0]
    )
    assert ran == [("a", 0), ("b", 0), ("a", 1), ("b", 1)] * 2
    assert {name: seen.tolist() for name, seen in times.items()} == {
        "a": [[1.0, 1.0], [2.0, 2.0]],
        "b": [[3.0, 3.0], [6.0, 6.0]],
    }


def test_the_order_is_asked_for_anew_each_time():
    ran, turns = [], iter([["b", "a"], ["a", "b"]])
    jobs = {name: lambda item, name=name: ran.append(name) for name in "ab"}
    in_turn(jobs, 2, order=lambda names: next(turns))
    assert ran == ["b", "a", "a", "b"]
