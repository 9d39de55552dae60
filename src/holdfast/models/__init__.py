"""Model calls: one file per provider, error classification, retry, and scripted models for tests.

`resolve_model` makes a model from a name, a URL or a function; it answers calls with a reply or a failure.
`resolve_chat_model` makes one that also takes an agent's steps. Models do not retry: `call_with_retry` does.
"""

from ..io.secrets import public_url, scrub
from .anthropic import Anthropic
from .calls import ChatModel, Failure, Limits, Model, ModelCall, Notice, Reply, StepCall, StepReply
from .failures import classify, failure_from_exception
from .gemini import Gemini
from .names import FunctionModel, context_window_of, resolve_chat_model, resolve_model
from .openai import OpenAIChat, OpenAIResponses
from .overflow import is_overflow, overflowed_silently
from .retry import RetryWait, call_with_retry, step_with_retry
from .scripted import ScriptedAgentModel, ScriptedModel

__all__ = [
    "Anthropic",
    "ChatModel",
    "Failure",
    "FunctionModel",
    "Gemini",
    "Limits",
    "Model",
    "ModelCall",
    "Notice",
    "OpenAIChat",
    "OpenAIResponses",
    "Reply",
    "RetryWait",
    "ScriptedAgentModel",
    "ScriptedModel",
    "StepCall",
    "StepReply",
    "call_with_retry",
    "classify",
    "context_window_of",
    "failure_from_exception",
    "is_overflow",
    "overflowed_silently",
    "public_url",
    "resolve_chat_model",
    "resolve_model",
    "scrub",
    "step_with_retry",
]
