"""What the laboratory stores as JSON: typed, with a version, and a published schema each."""

from __future__ import annotations

from de3lab.documents.analysis import AnalysisResult, Source, SubjectFacts
from de3lab.documents.document import Document
from de3lab.documents.run import MethodScores, RunRecord, ScoredAs, TestScores
from de3lab.documents.study import Latency, StudyResult

__all__ = [
    "DOCUMENTS",
    "AnalysisResult",
    "Document",
    "Latency",
    "MethodScores",
    "RunRecord",
    "ScoredAs",
    "Source",
    "StudyResult",
    "SubjectFacts",
    "TestScores",
]

DOCUMENTS: tuple[type[Document], ...] = (RunRecord, StudyResult, Latency, AnalysisResult)
