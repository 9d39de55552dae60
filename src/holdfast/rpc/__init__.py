"""A chat for a program in another process: JSON lines on standard input and output. docs/rpc.md is the protocol."""

from .lines import STANDARD_INPUT, Incoming, Outgoing, TooLong, incoming_from, lines_of
from .records import PROTOCOL
from .server import serve
from .serving import problem_in
from .signals import stopped_by_signals
from .turns import Turns

__all__ = [
    "PROTOCOL",
    "STANDARD_INPUT",
    "Incoming",
    "Outgoing",
    "TooLong",
    "Turns",
    "incoming_from",
    "lines_of",
    "problem_in",
    "serve",
    "stopped_by_signals",
]
