"""A person's conversation with an agent, whatever face it has: a terminal, plain output, JSON lines, RPC."""

from .chat import Chat
from .compacted import Compacted
from .opening import open_chat
from .problems import problem_in
from .state import State
from .turns import Answered, Turns

__all__ = ["Answered", "Chat", "Compacted", "State", "Turns", "open_chat", "problem_in"]
