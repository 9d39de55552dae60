"""H1: restore an archived message as a quoted copy at the end; the prefix does not change (H6)."""

from __future__ import annotations

from typing import Any

import pytest
from recall_story import call, result

from holdfast import Recall, SessionService, SlidingWindow, TurnCount, TurnWindow, check
from holdfast.errors import InvalidInput, UnknownEvent
from holdfast.triggers import always

pytestmark = pytest.mark.anyio


async def messages(service: SessionService, session_id: str = "s") -> list[dict[str, Any]]:
    return list((await service.context(session_id)).messages)


async def test_h1_restore_appends_a_copy_and_keeps_the_prefix(recall: Recall, service: SessionService) -> None:
    before = await messages(service)
    event = await recall.restore("#4")
    after = await messages(service)
    assert after[:-1] == before
    assert after[-1]["role"] == "user"
    assert "[Restored from earlier: #4, assistant" in after[-1]["content"]
    assert "the quarkling check fails" in after[-1]["content"]
    assert (event.body["source"], event.body["synthetic"]) == ((await service.events("s"))[3].id, True)
    assert await service.verify("s") == []


async def test_restore_does_not_count_as_a_turn(recall: Recall, service: SessionService) -> None:
    for reference in ("#4", "#2", "#1"):
        await recall.restore(reference)
    assert (await service.compact("s", TurnCount(1), SlidingWindow(2))).outcome == "not_needed"


async def test_restore_copy_is_not_a_second_search_hit(recall: Recall) -> None:
    await recall.restore("#4")
    assert [hit.reference for hit in (await recall.search("quarkling")).hits] == ["#4"]


async def test_restore_redaction_of_the_source_redacts_the_copy(recall: Recall, service: SessionService) -> None:
    event = await recall.restore("#4")
    await service.redact("s", event.body["source"])
    assert "quarkling" not in str(await service.export("s"))
    assert "quarkling" not in str(await messages(service))


async def test_restore_with_id_is_idempotent(recall: Recall, service: SessionService) -> None:
    one = await recall.restore("#4", id="again")
    two = await recall.restore("#4", id="again")
    assert one == two
    assert (await service.get("s")).version == one.seq


@pytest.mark.parametrize("format", ["openai-chat", "openai-responses", "anthropic", "gemini"])
async def test_restore_keeps_context_valid_in_every_format(service: SessionService, format: str) -> None:
    await service.create(id="s", format=format)
    text = "parts" if format == "gemini" else "content"
    for number in range(4):
        for role in ("user", "model" if format == "gemini" else "assistant"):
            content = f"{role} {number} says something"
            await service.append("s", {"role": role, text: [{"text": content}] if format == "gemini" else content})
    await service.compact("s", always, SlidingWindow(2))
    before = await messages(service)
    await service.restore("s", (await service.events("s"))[1].id)
    after = await messages(service)
    assert after[: len(before)] == before and len(after) == len(before) + 1
    assert check(after, format) == []
    assert "0 says something" in str(after[-1])


async def test_restore_brings_images_back(service: SessionService) -> None:
    await service.create(id="s", format="anthropic")
    source = {"type": "base64", "media_type": "image/png", "data": "A" * 4_000}
    image = {"type": "image", "source": source}
    await service.append("s", {"role": "user", "content": [{"type": "text", "text": "see"}, image]})
    for number in range(3):
        await service.append("s", {"role": "assistant", "content": f"answer {number}"})
        await service.append("s", {"role": "user", "content": f"question {number}"})
    await service.compact("s", always, SlidingWindow(1))
    await Recall(service, "s").restore("#1")
    last = (await messages(service))[-1]
    assert image in last["content"]
    assert check(await messages(service), "anthropic") == []


async def test_restore_into_a_lane(recall: Recall, service: SessionService) -> None:
    before = await messages(service)
    await service.append("s", {"role": "user", "content": "look"}, lane="research")
    await recall.restore("#4", lane="research")
    assert await messages(service) == before
    assert "quarkling" in str((await service.context("s", "research")).messages[-1])


async def test_restore_errors_name_the_cause(recall: Recall, service: SessionService) -> None:
    for reference, words in (
        ("#15", "only messages can be restored"),
        ("#14", "in the context already"),
        ("#1-#4", "not exactly one event: name a single one"),
        ("#3@10", "not exactly one event: name a single one"),
    ):
        with pytest.raises(InvalidInput, match=words):
            await recall.restore(reference)
    with pytest.raises(UnknownEvent):
        await recall.restore("#99")
    with pytest.raises(UnknownEvent):
        await service.restore("s", "nowhere")
    await service.redact("s", (await service.events("s"))[3].id)
    with pytest.raises(InvalidInput, match="redacted"):
        await recall.restore("#4")


async def test_restore_stays_in_context_until_archived_again(recall: Recall, service: SessionService) -> None:
    copy = await recall.restore("#4")
    with pytest.raises(InvalidInput, match="in the context already"):
        await recall.restore("#4")
    for content in ("go on", "and on"):
        await service.append("s", {"role": "user", "content": content})
        await service.append("s", {"role": "assistant", "content": "I do."})
    await service.compact("s", always, TurnWindow(1))
    again = await recall.restore(f"#{copy.seq}")
    assert again.body["source"] == copy.body["source"], "a copy of a copy is a copy of the source"
    assert "quarkling" in str((await messages(service))[-1])


async def test_restore_with_open_tool_calls_is_refused(recall: Recall, service: SessionService) -> None:
    await service.append("s", call("c9", "run", "{}"))
    with pytest.raises(InvalidInput, match=r"wait for their results \('c9'\): append those"):
        await recall.restore("#4")
    await service.append("s", result("c9", "done"))
    await recall.restore("#4")
    assert check(await messages(service), "openai-chat") == []


async def test_restore_of_a_cleared_tool_result(service: SessionService) -> None:
    from holdfast import PruneToolResults

    await service.create(id="s", format="openai-chat")
    await service.append("s", {"role": "user", "content": "go"})
    for number in range(4):
        await service.append("s", call(f"c{number}", "run", "{}"))
        await service.append("s", result(f"c{number}", f"output {number} " * 500))
    await service.append("s", {"role": "assistant", "content": "done"})
    await service.append("s", {"role": "user", "content": "and now?"})
    done = await service.prune("s", PruneToolResults(protect=500, minimum=100))
    assert done.edited
    await Recall(service, "s").restore("#3")
    assert "output 0" in str((await messages(service))[-1])
