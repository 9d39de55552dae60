"""Request fields: messages, system prompt and tools under the names that a provider's SDK takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .codec import format_name
from .parts import Json


def request_fields(messages: Sequence[Json], format: str, system: Any = None, tools: Any = None) -> Json:
    """Returns keyword arguments for the SDK's call, with the system prompt where this format takes it."""
    name, given = format_name(format), {} if tools is None else {"tools": tools}
    if name == "anthropic":
        return {"messages": list(messages), **({} if system is None else {"system": system}), **given}
    if name == "openai-responses":
        prompt = {} if system is None else {"instructions": _text(system)}
        return {"input": list(messages), **prompt, **given}
    if name == "gemini":
        config = given if system is None else {"system_instruction": system, **given}
        return {"contents": list(messages), **({"config": config} if config else {})}
    leading = [] if system is None else [{"role": "system", "content": system}]
    return {"messages": [*leading, *messages], **given}


def _text(system: Any) -> str:
    """Returns the text of a system prompt that is given as blocks."""
    if isinstance(system, str):
        return system
    if isinstance(system, Mapping):
        inner = next((system[key] for key in ("text", "content", "parts") if key in system), "")
        return _text(inner)
    return "\n".join(map(_text, system))
