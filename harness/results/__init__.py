"""What came of a run: the journal is the truth, everything else is rendered from it."""

from harness.results.facts import JobFacts, read_facts
from harness.results.history import History
from harness.results.journal import JobReport, Journal, RunReport, read_run

__all__ = ["History", "JobFacts", "JobReport", "Journal", "RunReport", "read_facts", "read_run"]
