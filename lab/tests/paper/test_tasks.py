"""Classes go by their names, where the files of a task number them."""

from __future__ import annotations

from de3lab.paper.tasks import CLASSES, class_names


def test_a_sample_names_its_classes():
    layers = [{"layer": 1, "prediction": "1"}, {"layer": 2, "prediction": "0"}]
    numbers = {"truth": "0", "layers": layers, "rows": 7}
    found = class_names("sst2", numbers)
    assert found["truth"] == "negative"
    assert [each["prediction"] for each in found["layers"]] == ["positive", "negative"]
    assert (found["rows"], numbers["truth"]) == (7, "0")  # what is stored stays


def test_other_numbers_and_tasks_stay_as_they_are():
    assert class_names("sst2", {"label_names": ["0", "1"]}) == {
        "label_names": ["negative", "positive"]
    }
    assert class_names("mine", {"label_names": ["0", "1"]}) == {"label_names": ["0", "1"]}
    assert class_names("sst2", {"label_names": ["bad", "good"]})["label_names"] == ["bad", "good"]
    assert class_names("sst2", {"layers": [2, 5]}) == {"layers": [2, 5]}  # of another analysis
    assert class_names("sst2", {"truth": None, "layers": []}) == {"truth": None, "layers": []}
    assert len(CLASSES["mnli"]) == 3
