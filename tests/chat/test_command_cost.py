"""/cost and the request get_cost: tokens and money by model, compactions apart."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from command_harness import CommandHarness, collapse

from holdfast.compaction.presets import preset
from holdfast.models import ScriptedAgentModel
from holdfast.models.calls import Reply, StepReply
from holdfast.tokens import Usage
from holdfast.transcripts import read_transcript
from holdfast.transcripts.importing import import_transcript

sys.path.append(str(Path(__file__).parent / "rpc"))
from rpc_harness import rpc_client

pytestmark = pytest.mark.anyio
KNOWN, UNKNOWN = "claude-sonnet-4-5", "house-model"
USAGE = Usage(input=1_000, output=100, cache_read=20_000, cache_write=4_000)
SUMMARY = Reply("## Completed Work\n- The berths were read.", usage=Usage(input=10_000, output=200), model=KNOWN)


def model(name: str) -> ScriptedAgentModel:
    return ScriptedAgentModel(StepReply((), "At 3. " * 900, usage=USAGE), answers=SUMMARY, repeat=True, name=name)


async def test_cost_counts_session_and_run_with_compactions_apart(tmp_path: Path) -> None:
    async with CommandHarness(tmp_path, model(KNOWN), preset=preset("pi", reserve=1_000, keep=550)).open() as chat:
        assert (await chat.run("/cost")).text == "No model has reported any usage yet."
        await chat.run_all("When is low water?", "And then?", "/compact")
        shown = collapse((await chat.run("/cost")).text)
        # 2 × (1,000 × 3 + 100 × 15 + 20,000 × 0.3 + 4,000 × 3.75) / 1,000,000
        assert "this session 2 2,000 200 40,000 8,000 0.0510" in shown
        assert "compactions 1 10,000 200 0 0 0.0330" in shown
        await chat.run_all("/clear", "In another session?")
        shown = collapse((await chat.run("/cost")).text)
        assert "this session 1 1,000 100" in shown and "this run 3 3,000 300" in shown


async def test_cost_says_where_a_price_is_unknown(tmp_path: Path) -> None:
    async with CommandHarness(tmp_path, model(UNKNOWN)).open() as chat:
        await chat.run("When is low water?")
        chat.chat.configure(model=model(KNOWN))
        await chat.run("And now?")
        shown = collapse((await chat.run("/cost")).text)
        assert "this session 2 2,000 200 40,000 8,000 unknown" in shown and f"{KNOWN} 1 1,000 100" in shown
        assert f"no price for all tokens of {UNKNOWN}." in shown


async def test_rpc_get_cost_returns_the_same(tmp_path: Path) -> None:
    async with rpc_client(tmp_path, model(KNOWN)) as client:
        await client.request(type="prompt", text="When is low water?")
        costs = await client.request(type="get_cost")
        usage = {"input": 1_000, "output": 100, "cache_read": 20_000, "cache_write": 4_000}
        assert costs["session"] == costs["run"] and costs["run_compactions"] == []
        assert costs["run"] == [{"model": KNOWN, "calls": 1, "usage": usage, "price": pytest.approx(0.0255)}]


async def test_cost_keeps_the_spending_of_another_tool_apart(tmp_path: Path) -> None:
    lines = [
        {"type": "user", "uuid": "1", "sessionId": "s", "message": {"role": "user", "content": "How deep?"}},
        {
            "type": "assistant",
            "uuid": "2",
            "parentUuid": "1",
            "sessionId": "s",
            "message": {
                "role": "assistant",
                "model": KNOWN,
                "content": [{"type": "text", "text": "3 m."}],
                "usage": {"input_tokens": 5_000, "output_tokens": 50},
            },
        },
    ]
    (file := tmp_path / "s.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    async with CommandHarness(tmp_path, model(KNOWN)).open() as chat:
        record = await import_transcript(chat.sessions, read_transcript(file))
        await chat.run(f"/sessions {record.id}")
        before = await chat.chat.costs()
        assert before.session == () and [cost.usage.input for cost in before.imported] == [5_000]
        await chat.run("When is low water?")
        after = await chat.chat.costs()
        assert [cost.calls for cost in after.session] == [1] and after.imported == before.imported
        shown = collapse((await chat.run("/cost")).text)
        assert "this session 1 1,000 100" in shown and "by claude-code 1 5,000 50" in shown
