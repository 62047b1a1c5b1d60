"""Other machines that guests run on."""

from harness.hosts.config import HostSpec, read_hosts
from harness.hosts.examine import HostFinding, examine
from harness.hosts.fleet import Fleet
from harness.hosts.ssh import SshHost

__all__ = ["Fleet", "HostFinding", "HostSpec", "SshHost", "examine", "read_hosts"]
