"""`python -m harness` is the console script `harness`."""

from harness.cli import main

main()
