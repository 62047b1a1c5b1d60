"""Other machines that guests run on. Who has none does not wait for paramiko to be imported: what needs it is not here."""

from harness.hosts.config import HostSpec, Login, read_hosts
from harness.hosts.fleet import Fleet

__all__ = ["Fleet", "HostSpec", "Login", "read_hosts"]
