"""Summaries: what a model is given to read and asked to write, and what is made of its answer."""

from .free_text import RECURSIVE_TASK, FreeText
from .inventions import checked
from .material import Draft, Material
from .prompts import SYSTEM
from .readable import readable
from .rendering import PREFIX, SHADOW_PROMPT, AsExchange, AsReply, AsSystem, AsUser, Rendering, as_assistant
from .sizing import sized
from .state_writer import StateText
from .structured_writer import Structured
from .transcript import Style, Transcript, transcript_of
from .verifying import HEADING, verified

__all__ = [
    "HEADING",
    "PREFIX",
    "RECURSIVE_TASK",
    "SHADOW_PROMPT",
    "SYSTEM",
    "AsExchange",
    "AsReply",
    "AsSystem",
    "AsUser",
    "Draft",
    "FreeText",
    "Material",
    "Rendering",
    "StateText",
    "Structured",
    "Style",
    "Transcript",
    "as_assistant",
    "checked",
    "readable",
    "sized",
    "transcript_of",
    "verified",
]
