"""The task of every client: read a dozen long files, remember one figure of them and one word of the request.

The model is played by `TaskModel`, which knows only what the request has: a task that is no longer in the prompt is a
task that it cannot finish.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.providers import Answer, Call, Request, Say

LOGS = 12
DEEPEST = 2
SEAL = "ORLOP-4711"
PROMPT = (
    "Print the files berth-01.txt to berth-12.txt with cat, one at a time and in order. When you have read all twelve, "
    f"answer with the deepest berth, its depth, and the seal word {SEAL}."
)
ANSWER = f"Read 12 logs. Deepest is berth {DEEPEST} with 97 feet. Seal: {SEAL}."
SECOND_PROMPT = "Now ask a sub-agent for the tide, if you have any, and repeat the seal word."
SECOND_ANSWER = f"The seal word was {SEAL}."
LOST = "There is no task to do."
_TIDE = "Tell the tide of today."
_MOST_REQUESTS = 80
_TASK = re.compile(r"answer with the deepest berth, its depth, and the seal word (ORLOP-\d+)")
_DEPTH = re.compile(r"berth (\d+) (?:with|has) (\d+) feet")
_READ = re.compile(r"(?:Log |read up to log |cat berth-)(\d\d)\b")
"""A log that was printed, by its text, by a summary or by the command that printed it."""
_SUMMARY = re.compile(
    r"summar(?:y|ies|i[sz]\w+) (?:of|our|the|this|all|above|older|agent|assistant|of the)|context checkpoint compaction"
    r"|respond with text only|<state_snapshot>|handoff summary|create a (?:detailed|structured|new anchored)"
    r"|PREFIX of a turn",
    re.IGNORECASE,
)
_AGENTS = {"Agent": "general-purpose", "Task": "general-purpose", "task": "general"}
"""Tools that start a sub-agent, and the kind of agent to ask for."""
_SHELLS = (
    *("exec_command", "shell_command", "shell", "bash", "Bash", "run_shell_command", "run_command", "Shell"),
    *("execute_command", "run_terminal_command", "run_commands", "run_in_terminal"),
)


def write_logs(folder: Path) -> None:
    """Writes the files of the task, about 12,000 characters each."""
    for number in range(1, LOGS + 1):
        depth = 97 if number == DEEPEST else 20 + number
        lines = [f"Log {number:02} of the harbour: berth {number} has {depth} feet.\n"]
        lines += [
            f"{hour:03}: ship {number * 1_000 + hour} asked for a pilot and left with the ebb.\n" for hour in range(180)
        ]
        (folder / f"berth-{number:02}.txt").write_text("".join(lines))


class TaskModel:
    """Plays the model: reads the next file until all are read, then answers; knows only what the request has."""

    def __init__(self) -> None:
        self.summaries = 0
        """Summaries that the client asked for."""
        self.lost = 0
        """Requests without the task."""
        self.requests = 0

    def __call__(self, request: Request) -> Answer:
        self.requests += 1
        text = _all_text(request)
        shell = _shell(request.body)
        newest = _newest_text(request)
        if self.requests > _MOST_REQUESTS:
            return "This takes too many requests."
        if _SUMMARY.search(newest) or (shell is None and _SUMMARY.search(request.system)):
            self.summaries += 1
            return self._summary(text)
        if _TIDE in newest:
            return "The tide is three feet."
        if shell is None:
            return '{"title": "Harbour logs"}' if "json" in request.system.lower() else "Harbour logs"
        if (task := _TASK.search(text)) is None:
            self.lost += 1
            return LOST
        if SECOND_PROMPT in text:
            agent = next((name for name in _AGENTS if name in _tools(request.body)), None)
            if agent is not None and "The tide is three feet." not in text:
                asked = {"description": "Tell the tide", "prompt": _TIDE, "subagent_type": _AGENTS[agent]}
                return Say("I ask.", calls=(Call(agent, asked),), thinking=self._thinking(request))
            return f"The seal word was {task[1]}."
        number, best = _progress(text)
        note = f"Deepest so far: berth {best[1]} with {best[0]} feet." if number else "I begin."
        if number < LOGS:
            line = f"cat berth-{number + 1:02}.txt"
            return Say(note, calls=(_command(shell, line),), thinking=self._thinking(request))
        return f"Read {number} logs. Deepest is berth {best[1]} with {best[0]} feet. Seal: {task[1]}."

    def _thinking(self, request: Request) -> str:
        """Returns reasoning for a client that asks for it and sends it back."""
        body = request.body
        kind = (body.get("thinking") or {}).get("type")
        config = (body.get("generationConfig") or {}).get("thinkingConfig")
        asked = (
            kind in ("enabled", "adaptive") or "reasoning.encrypted_content" in (body.get("include") or ()) or config
        )
        return f"Thought {self.requests}: the next file." if asked else ""

    def _summary(self, text: str) -> str:
        """Returns an honest summary: the task, if the request has it, and the progress."""
        task = _TASK.search(text)
        number, best = _progress(text)
        about = f"The user wants all berth files printed with cat; then {task[0]}." if task else "The task is unknown."
        notes = f"{about} I have read up to log {number:02}. Deepest so far: berth {best[1]} with {best[0]} feet."
        return f"<analysis>Done.</analysis>\n<summary>\n{notes}\n</summary>"


def _progress(text: str) -> tuple[int, tuple[int, int]]:
    """Returns the number of the last log that was read, and the deepest berth so far with its depth."""
    number = max(map(int, _READ.findall(text)), default=0)
    return number, max(((int(depth), int(berth)) for berth, depth in _DEPTH.findall(text)), default=(0, 0))


def _all_text(request: Request) -> str:
    lists = (request.body.get(field) for field in ("messages", "input", "contents"))
    return json.dumps([given for given in lists if given], ensure_ascii=False).replace("\\n", "\n")


def _newest_text(request: Request) -> str:
    """Returns the text of the last user message."""
    messages = next(filter(None, (request.body.get(field) for field in ("messages", "input", "contents"))), [])
    if isinstance(messages, str):
        return messages
    last = [m for m in messages[-1:] if isinstance(m, dict) and m.get("role") == "user"]
    return json.dumps([_texts(m) for m in last], ensure_ascii=False)


def _texts(message: dict[str, Any]) -> list[str]:
    content = message.get("content") or message.get("parts") or []
    if isinstance(content, str):
        return [content]
    return [str(part["text"]) for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)]


def _tools(body: dict[str, Any]) -> set[str]:
    names: set[str] = set()
    for tool in body.get("tools") or []:
        declared = tool.get("functionDeclarations") or [tool.get("function") or tool]
        names |= {str(one.get("name")) for one in declared}
    return names


def _shell(body: dict[str, Any]) -> str | None:
    """Returns the name of the tool that runs commands."""
    names = _tools(body)
    return next((name for name in _SHELLS if name in names), None)


def _command(shell: str, line: str) -> Call:
    match shell:
        case "exec_command":
            return Call(shell, {"cmd": line})
        case "shell":
            return Call(shell, {"command": ["bash", "-c", line]})
        case "Bash" | "bash" | "run_shell_command":
            return Call(shell, {"command": line, "description": "Print a log", "is_background": False})
        case "execute_command":
            return Call(shell, {"command": line, "requires_approval": False})
        case "run_commands":
            return Call(shell, {"commands": [line]})
    return Call(shell, {"command": line})
