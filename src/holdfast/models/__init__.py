"""The only place where a model is called.

A model is made from a name, an address or a function (`model_for`) and answers calls with a reply or a failure. One
that an agent can talk to (`stepper_for`) takes steps, too. Neither tries again by itself: that is `trying`'s.
"""

from .anthropic import Anthropic
from .failures import classify, failure_of
from .function import FunctionModel
from .gemini import Gemini
from .names import model_for, stepper_for
from .openai_chat import OpenAIChat
from .openai_responses import OpenAIResponses
from .overflow import is_overflow, overflowed_silently
from .reading import reads
from .scripted import ScriptedModel
from .scripted_agent import ScriptedAgentModel
from .secrets import public_url, scrub
from .trying import Waiting, keep_trying, persistently

__all__ = [
    "Anthropic",
    "FunctionModel",
    "Gemini",
    "OpenAIChat",
    "OpenAIResponses",
    "ScriptedAgentModel",
    "ScriptedModel",
    "Waiting",
    "classify",
    "failure_of",
    "is_overflow",
    "keep_trying",
    "model_for",
    "overflowed_silently",
    "persistently",
    "public_url",
    "reads",
    "scrub",
    "stepper_for",
]
