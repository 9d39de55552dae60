"""An agent's script from a file: `script:demo.json` stands where another name of a model would.

    [{"text": "I look at the tide table."},
     {"calls": [{"name": "read_file", "arguments": {"path": "tides.csv"}}]},
     "All is well."]

or, to say more: {"steps": […], "summary": "What a summary says.", "repeat": true, "delay": 0.05}. After its last step
the script is over and the next one fails, unless it says `"repeat": true`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from ..calls import Finish, StepReply
from ..errors import InvalidInput
from ..messages import Json, ToolCall
from ..tokens import Usage
from .scripted_agent import ScriptedAgentModel


class _Call(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    arguments: Json | str = {}
    id: str = ""


class _Step(msgspec.Struct, forbid_unknown_fields=True):
    text: str = ""
    calls: tuple[_Call, ...] = ()
    finish: Finish = "stop"
    usage: Usage | None = None


class _Script(msgspec.Struct, forbid_unknown_fields=True):
    steps: list[_Step | str]
    summary: str | list[str] = []
    repeat: bool = False
    delay: float = 0.0


def read_script(path: str) -> ScriptedAgentModel:
    file = Path(path).expanduser()
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or "it is no text"
        raise InvalidInput(f"The script {path!r} cannot be read ({why}): name a JSON file with steps.") from None
    script = _read(text, path)
    return ScriptedAgentModel(
        [_step(step) for step in script.steps],
        answers=script.summary,
        repeat=script.repeat,
        delay=script.delay,
        name=f"script:{file.name}",
    )


def _read(text: str, path: str) -> _Script:
    try:
        given: Any = msgspec.json.decode(text)
        script = msgspec.convert({"steps": given} if isinstance(given, list) else given, _Script)
    except msgspec.MsgspecError as problem:
        raise InvalidInput(f"The script {path!r} is not one ({problem}): see holdfast.models.script_file.") from None
    if not script.steps or script.delay < 0:
        raise InvalidInput(f"The script {path!r} needs at least one step, and a delay of 0 s or more.")
    return script


def _step(step: _Step | str) -> StepReply:
    if isinstance(step, str):
        return StepReply((), step)
    calls = tuple(ToolCall(call.id, call.name, call.arguments) for call in step.calls)
    return StepReply((), step.text, calls, step.finish, step.usage)
