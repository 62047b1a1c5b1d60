"""From a commit to a kernel: the toolchain, a configuration that is proved, the build."""

from harness.kernel.build import BuildFailed, build
from harness.kernel.kconfig import ConfigNotProved, fragments_for, read_fragment
from harness.kernel.toolchain import KINDS as TOOLCHAINS
from harness.kernel.toolchain import Toolchain, detect

__all__ = ["TOOLCHAINS", "BuildFailed", "ConfigNotProved", "Toolchain", "build", "detect", "fragments_for", "read_fragment"]
