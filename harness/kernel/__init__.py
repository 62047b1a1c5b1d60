"""From a commit to a kernel: the toolchain, a configuration that is proved, the build."""

from harness.kernel.build import build, digest_for
from harness.kernel.given import Given, adopt, version_of
from harness.kernel.jobserver import Jobserver
from harness.kernel.kconfig import ConfigNotProved, fragments_for, read_fragment
from harness.kernel.make import BuildFailed
from harness.kernel.symbols import Symbols
from harness.kernel.toolchain import AUTO, Toolchain, choose, detect, programs
from harness.kernel.warnings import new as new_warnings

__all__ = [
    "AUTO",
    "BuildFailed",
    "ConfigNotProved",
    "Given",
    "Jobserver",
    "Symbols",
    "Toolchain",
    "adopt",
    "build",
    "choose",
    "detect",
    "digest_for",
    "fragments_for",
    "new_warnings",
    "programs",
    "read_fragment",
    "version_of",
]
