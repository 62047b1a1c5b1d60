"""Other machines that guests run on. Who has none does not wait for paramiko to be imported: `ssh` and `examine` are not here."""

from harness.hosts.config import HostSpec, read_hosts
from harness.hosts.fleet import Fleet

__all__ = ["Fleet", "HostSpec", "read_hosts"]
