"""The only place where a model is called.

A model is made from a name, an address or a function (`model_for`) and answers calls with a reply or a failure.
Trying again, time limits and costs are the driver's.
"""

from .anthropic import Anthropic
from .failures import classify, failure_of
from .function import FunctionModel
from .gemini import Gemini
from .names import model_for
from .openai_chat import OpenAIChat
from .openai_responses import OpenAIResponses
from .overflow import is_overflow, overflowed_silently
from .reading import reads
from .scripted import ScriptedModel
from .secrets import public_url, scrub

__all__ = [
    "Anthropic",
    "FunctionModel",
    "Gemini",
    "OpenAIChat",
    "OpenAIResponses",
    "ScriptedModel",
    "classify",
    "failure_of",
    "is_overflow",
    "model_for",
    "overflowed_silently",
    "public_url",
    "reads",
    "scrub",
]
