"""What came of a run: the journal is the truth, everything else is rendered from it."""

from harness.results.history import History
from harness.results.journal import JobReport, Journal, RunReport, read_run

__all__ = ["History", "JobReport", "Journal", "RunReport", "read_run"]
