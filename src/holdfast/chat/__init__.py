"""The conversation of a user with an agent, independent of its front end: terminal, plain output, JSON lines or RPC."""

from .chat import Chat
from .open_chat import open_chat
from .prompt_runner import PromptResult, PromptRunner
from .state import ChatCompactionResult, ChatState, compaction_error_event

__all__ = [
    "Chat",
    "ChatCompactionResult",
    "ChatState",
    "PromptResult",
    "PromptRunner",
    "compaction_error_event",
    "open_chat",
]
