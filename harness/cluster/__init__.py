"""Workers that do whole jobs on other machines, behind a Dask scheduler. `dask` is not imported here: who has no cluster need
not have it."""

from harness.cluster.errand import Done, Errand, Heard, fingerprint, pack, unpack

__all__ = ["Done", "Errand", "Heard", "fingerprint", "pack", "unpack"]
