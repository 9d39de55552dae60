"""A person's conversation with an agent, whatever face it has: a terminal, plain output, JSON lines, RPC."""

from .chat import Chat
from .compacted import Compacted
from .opening import open_chat
from .state import State

__all__ = ["Chat", "Compacted", "State", "open_chat"]
