"""RPC server for a chat: JSON lines on standard input and output. docs/rpc.md describes the protocol."""

from .records import PROTOCOL_VERSION
from .server import serve

__all__ = [
    "PROTOCOL_VERSION",
    "serve",
]
