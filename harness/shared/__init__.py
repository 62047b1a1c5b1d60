"""What others have built: kernels and initramfs by their digests, in a folder that machines share, or behind SFTP."""

from harness.shared.artefacts import Artefacts, opened
from harness.shared.spec import parse_spec

__all__ = ["Artefacts", "opened", "parse_spec"]
