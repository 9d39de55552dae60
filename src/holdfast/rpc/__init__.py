"""A chat for a program in another process: JSON lines on standard input and output. docs/rpc.md is the protocol."""

from .records import PROTOCOL
from .server import serve

__all__ = ["PROTOCOL", "serve"]
