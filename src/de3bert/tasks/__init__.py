"""What a model is asked: what a row, a label, an answer, a metric and a unit of leaving are.

Needs no torch. A text is a sentence of one unit, so that engine, traces, curves and calibration
know nothing of tasks but the number of each unit's sentence.
"""

from de3bert.tasks.answers import Prediction, TaggedSentence
from de3bert.tasks.explanations import Explanation, SentenceExplanation
from de3bert.tasks.task import TASKS, Task, known_task, task_of
from de3bert.tasks.texts import TextClassification
from de3bert.tasks.words import TokenClassification

__all__ = [
    "TASKS",
    "Explanation",
    "Prediction",
    "SentenceExplanation",
    "TaggedSentence",
    "Task",
    "TextClassification",
    "TokenClassification",
    "known_task",
    "task_of",
]
