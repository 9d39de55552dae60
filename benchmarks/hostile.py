"""Pathological sessions: time and memory of a compaction must grow only with the size of the input."""

from __future__ import annotations

import base64
import json
import random
import sys
from collections.abc import Callable, Iterator

from benchmarks.alone import report_call, run_alone, warm_up
from benchmarks.measure import Options, Ratio
from benchmarks.mixes import Json
from holdfast import compact
from holdfast.tokens.estimators import load_counter

BUDGET = 8_000
QUICK_DIVISOR = 50
"""--quick divides the sizes by this."""
MEGA = 1_000_000
_FAMILY = "👩‍👩‍👧‍👦🇺🇳👍🏽"


def run(options: Options) -> Iterator[Ratio]:
    part = QUICK_DIVISOR if options.quick else 1
    for name in SESSIONS:
        once = run_alone(__name__, name, str(part), "pass")
        ours = run_alone(__name__, name, str(part), "compact")
        yield Ratio(
            f"hostile: {name}",
            f"compact() / one pass of the tokenizer; {once.result:,.0f} tokens, "
            f"{ours.peak / MEGA:,.0f} MB peak growth, {once.peak / MEGA:,.0f} MB for the pass",
            ours.seconds / once.seconds,
            seconds={"compact": ours.seconds, "pass": once.seconds},
        )


def one_pass(messages: list[Json]) -> float:
    count = load_counter("o200k_base")
    given = (call["function"]["arguments"] for message in messages for call in message.get("tool_calls") or ())
    return sum(count(text) for text in (*(message["content"] or "" for message in messages), *given))


def compacted_size(messages: list[Json]) -> float:
    result = compact(messages, budget=BUDGET)
    assert result.messages and result.tokens_after <= BUDGET, result
    return result.tokens_after


def session(result: str, arguments: str = '{"command": "make"}') -> list[Json]:
    """One call with this result, between two short requests."""
    function = {"name": "run", "arguments": arguments}
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]}
    answer = {"role": "tool", "tool_call_id": "c", "content": result}
    return [_message("Please sort this out."), call, answer, _message("Done.", "assistant"), _message("And now?")]


def _message(text: str, role: str = "user") -> Json:
    return {"role": role, "content": text}


def _log(size: int) -> str:
    rng = random.Random(1)
    line = "the parser reads each line of the file and keeps an index of item_{} at {}"
    block = "\n".join(line.format(rng.randrange(10**6), rng.random()) for _ in range(2_000))
    return (block * (size // len(block) + 1))[:size]


def _tiny(count: int) -> list[Json]:
    return [_message(f"ok {place}", ("user", "assistant")[place % 2]) for place in range(count | 1)]


def _lines(count: int) -> list[Json]:
    """Results without repeated lines."""
    whole = []
    for place in range(count // 500):
        request, call, answer, reply, _ = session("\n".join(f"unique_{place}_{line} = {line}" for line in range(500)))
        whole += [request, json.loads(json.dumps(call).replace('"c"', f'"c{place}"')), answer, reply]
        answer["tool_call_id"] = f"c{place}"
    return [*whole, _message("And now?")]


def _deep(depth: int) -> str:
    return '{"a": ' * depth + "1" + "}" * depth


def _steps(count: int) -> str:
    return json.dumps({"plan": [{"step": f"step {place}", "status": "pending"} for place in range(count)]})


SESSIONS: dict[str, Callable[[int], list[Json]]] = {
    "one result of 50 MB": lambda part: session(_log(50 * MEGA // part)),
    "a million tiny messages": lambda part: _tiny(MEGA // part),
    "a million different lines": lambda part: _lines(MEGA // part),
    "one line, a million times": lambda part: session("the same line again, item_9\n" * (MEGA // part)),
    "10 MB without a newline": lambda part: session("a word or item_9 " * (10 * MEGA // 17 // part)),
    "10 MB without a space": lambda part: session("x" * (10 * MEGA // part)),
    "only emoji": lambda part: session(_FAMILY * (MEGA // part)),
    "only base64": lambda part: session(base64.b64encode(random.Random(2).randbytes(7_500_000 // part)).decode()),
    "only digits": lambda part: session("".join(random.Random(3).choices("0123456789", k=10 * MEGA // part))),
    "only whitespace": lambda part: [_message(" \n\t" * (3 * MEGA // 1_000 // part), m["role"]) for m in _tiny(1_000)],
    "arguments 900 levels deep": lambda part: session(_log(100_000), _deep(900)),
    "a plan of 100,000 steps": lambda part: session(_log(100_000), _steps(MEGA // 10 // part)),
    "a command of 10 MB": lambda part: session(_log(100_000), json.dumps({"command": "x " * (5 * MEGA // part)})),
}


def main(name: str, part: str, what: str) -> None:
    messages = SESSIONS[name](int(part))
    warm_up()
    report_call(lambda: compacted_size(messages) if what == "compact" else one_pass(messages))


if __name__ == "__main__":
    main(*sys.argv[1:])
