"""fgraph-harness: apply a kernel series, prove its configuration, build, boot, test, and tell the truth about it."""

__version__ = "0.1.0"
