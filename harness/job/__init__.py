"""One architecture at one point: configuration -> kernel -> initramfs -> guest -> cases."""

from harness.job.context import Context
from harness.job.job import Job

__all__ = ["Context", "Job"]
