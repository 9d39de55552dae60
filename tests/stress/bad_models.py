"""Ten rounds of every preset that writes a summary, with models that forget, invent, or answer in prose (H3).

Usage: python -m tests.stress.bad_models [--target 8000] [--presets holdfast,pi] [--rounds 10]

After the last round the context must have the task, the user's rules in five languages, every file that was changed,
the open steps of the plan and the newest request; a name that a model invented must be gone, or in a remark.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.forgetting import RULES

from holdfast import compact, preset
from holdfast.compaction.presets import PRESETS
from holdfast.messages import decode_all
from holdfast.models import ModelCall, ScriptedModel
from holdfast.triggers import always

SUMMARIZING = [name for name in PRESETS if preset(name).strategy is not None]
ALL_RULES = (
    *RULES,
    "No toques nunca la carpeta facturas.",
    "La señora Ibáñez firma cada cambio del esquema.",
    "Les montants sont toujours en centimes.",
    "Madame Roux relit chaque message aux clients.",
)
TASK = "Move the tide tables of Osterhaven to the new format, berth by berth, and keep the old readers working."
NEWEST = "Now look at berth 40 as well, please."
STEPS = ("Convert the quay tables", "Check the moon phases", "Tell the harbour office")
FILES = tuple(f"/srv/harbor/berth{number}.py" for number in range(1, 13))
Payloads = list[dict[str, Any]]


def story() -> Payloads:
    """A session with a task, rules between the steps, changed files, failing commands and a plan."""
    messages: Payloads = [{"role": "user", "content": TASK}]
    plan = [{"content": step, "status": "pending"} for step in STEPS]
    messages += _call("p", "TodoWrite", {"todos": plan}, "Todos have been modified.")
    rules = iter(ALL_RULES)
    for number in range(40):
        path = FILES[number % len(FILES)]
        messages += _call(f"r{number}", "Read", {"file_path": path}, f"def berth{number}(): return {number}\n" * 30)
        edit = {"file_path": path, "old_string": f"return {number}", "new_string": f"return {number + 1}"}
        messages += _call(f"e{number}", "Edit", edit, f"The file {path} has been updated.")
        messages += _call(f"c{number}", "Bash", {"command": f"make berth{number}"}, "ok, 3 passed")
        messages.append({"role": "assistant", "content": f"Berth {number} reads the new format."})
        messages.append({"role": "user", "content": next(rules, f"Go on with berth {number + 1}, please.")})
    messages[-1]["content"] = NEWEST
    return messages


def _call(id: str, name: str, arguments: Any, result: str) -> Payloads:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return [
        {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": id, "content": result},
    ]


def _lines(call: ModelCall) -> list[str]:
    lines = [" ".join(line.strip("-|*#[] ").split())[:120] for line in call.prompt.splitlines()]
    return [line for line in lines if len(line) > 12 and line[0] not in "<[{"]


def _survives(text: str) -> bool:
    return hashlib.sha256(text.encode(errors="replace")).digest()[0] < 128


def _in_form(call: ModelCall, lines: list[str]) -> str:
    bullets = "\n".join(f"- {line}" for line in lines) or "- The work went on."
    if "state_delta" in call.prompt:
        words, artifacts = "\n".join(bullets.splitlines()[:-1]), lines[-1:]  # of the last line only the state speaks
        return json.dumps({"summary": f"KEY FACTS\n- They talked.\n{words}", "state_delta": {"artifacts": artifacts}})
    if "### Completed Work" in call.prompt:
        return f"### Current State\n- Working on: the berths\n\n### Key Technical Decisions\n{bullets}"
    return f"## Done\n{bullets}"


def forgets_half(call: ModelCall) -> str:
    """Repeats every other line of its prompt, and few of them."""
    return _in_form(call, list(filter(_survives, _lines(call)))[:8])


def invents_a_tenth(call: ModelCall) -> str:
    """Adds one invented file, decision and command to every ten lines."""
    lines = _lines(call)[:20]
    for number, place in enumerate(range(len(lines), 0, -10)):
        name = f"ghost_{len(call.prompt)}_{number}"
        lines.insert(place, f"Wrote dist/{name}.tar and ran `make {name} --all`")
    return _in_form(call, lines)


def writes_prose(call: ModelCall) -> str:
    """Tells a few sentences in place of what was asked for."""
    return "We talked about the harbour for a while, and the work is going well. " + " ".join(_lines(call)[:2])


MODELS: dict[str, Callable[[ModelCall], str]] = {
    "forgets half": forgets_half,
    "invents a tenth": invents_a_tenth,
    "prose": writes_prose,
}


class Report(NamedTuple):
    """What the last context lacks of what it must have, and invented names that no remark mentions.

    Rounds in which nothing was compacted are a loss, too.
    """

    preset: str
    model: str
    carried: bool
    lost: tuple[str, ...]
    invented: tuple[str, ...]
    round: int


def run(name: str, model: str, *, carried: bool, target: int, rounds: int = 10) -> Report:
    """Compacts after each part of the story; the next round has the checkpoint (`carried`), or the messages alone."""
    history, messages, checkpoint, remarks = story(), list[Any](), None, list[str]()
    ends = [len(history) * part // rounds for part in range(rounds + 1)]
    for start, end in pairwise(ends):
        messages = [*messages, *history[start:end]]
        result = compact(
            messages,
            preset=name,
            summarizer=ScriptedModel(MODELS[model], repeat=True),
            budget=10 * target,
            target=target,
            trigger=always,
            min_saving=0.0,
            format="openai-chat",
            **({"previous": checkpoint} if carried else {}),
        )
        remarks += result.remarks
        messages, checkpoint = json.loads(json.dumps(list(result.messages))), result.checkpoint
    decoded = decode_all(messages, "openai-chat")[0]
    shown = "\n".join(
        "\n".join([message.text, *(part.text for part in message.results), *(c.arguments_json for c in message.calls)])
        for message in decoded
    )
    plain = " ".join(word for word in shown.split() if word != ">")
    names = (file.rpartition("/")[2] for file in FILES)
    wanted = (TASK, NEWEST, *ALL_RULES, *STEPS, *names)
    remarked = "\n".join(remarks)
    ghosts = {word.strip("`.,;:()[]") for word in plain.split() if "ghost_" in word}
    unsaid = tuple(sorted(ghost for ghost in ghosts if ghost.rpartition("/")[2] not in remarked))
    lost = tuple(text for text in wanted if text not in plain)
    few = ("compactions",) if result.round < rounds // 2 else ()
    return Report(name, model, carried, (*few, *lost), unsaid, result.round)


def reports(names: list[str], target: int, rounds: int) -> Iterator[Report]:
    for name in names:
        for model in MODELS:
            for carried in (True, False):
                yield run(name, model, carried=carried, target=target, rounds=rounds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", type=int, default=8_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--presets", default=",".join(SUMMARIZING))
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    failed = count = 0
    for report in reports(options.presets.split(","), options.target, options.rounds):
        count += 1
        failed += bool(report.lost or report.invented)
        way = "previous=" if report.carried else "messages"
        line = f"{report.preset:15} {report.model:16} {way:10} round {report.round:2}  "
        print(line + ("; ".join([*report.lost, *report.invented])[:300] or "all kept"), flush=True)
    print(f"{count} runs, {failed} lost something or kept an invented name without a word")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
