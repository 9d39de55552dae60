"""Every type of the installed SDKs in a session: compacted, read again by another process, and redacted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sdk_cases import Case, each_of, fixed_number, forms, one_of_each
from sdk_changes import Change, changes, own_strings, unsound
from sdk_conversations import Conversation, conversation
from sdk_types import conforms_to_sdk

from holdfast import MemoryStore, PruneToolResults, SessionService, SQLiteStore, TokenWindow, check
from holdfast.messages import decode_all, encode_all
from holdfast.sessions import Context
from holdfast.sessions.scrubbing import without_content
from holdfast.sessions.text_scrubber import REDACTED
from holdfast.triggers import always
from judge import judge
from real_sessions import WHOLE

pytestmark = pytest.mark.anyio
each_case = pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in one_of_each()])


@pytest.fixture
def store(case: Case, tmp_path: Path) -> Any:
    """A store of files for some of the samples, with HOLDFAST_WHOLE set for all."""
    on_disk = WHOLE or fixed_number(case.id) % 16 == 0
    return SQLiteStore(tmp_path / "log.db") if on_disk else MemoryStore()


async def opened(store: Any, case: Case, given: Conversation) -> SessionService:
    """A service with the conversation as session `s`, whose messages have their numbers as ids."""
    service = SessionService(store)
    await service.create(id="s", format=case.format)
    await service.append("s", given.messages, id=[str(index) for index in range(len(given.messages))])
    return service


async def read_again(store: Any) -> Context:
    """The context as another process reads it."""
    return await SessionService(store).context("s")


def written(messages: Any) -> list[str]:
    return [json.dumps(message) for message in messages]


@each_case
async def test_sdk_type_in_a_session_is_compacted_and_read_again(case: Case, store: Any) -> None:
    given = conversation(case)
    service = await opened(store, case, given)
    assert written(await read_again(store)) == written(given.messages)
    for strategy in (PruneToolResults(protect=0, minimum=0), TokenWindow(600)):
        await service.compact("s", always, strategy)
        here, there = await service.context("s"), await read_again(store)
        assert unsound(given, list(here), case) == []
        assert written(there) == written(here)
        assert there.tokens == here.tokens


@each_case
async def test_sdk_type_redacted_keeps_its_place(case: Case, store: Any) -> None:
    """The message stays with its ids, so that the conversation is valid; what it said is gone."""
    given = conversation(case)
    place = given.sample.message
    redacted = given.messages[place]
    others = written(given.messages[:place] + given.messages[place + 1 :])
    service = await opened(store, case, given)
    await service.redact("s", str(place))
    shown = list(await read_again(store))
    assert check(shown, case.format) == []
    assert judge(shown, case.format) == []
    assert [message for message in written(shown) if message in others] == others
    assert [message for message in shown if not conforms_to_sdk(message, case.format)] == []
    left = own_strings(redacted) & set[str]().union(*map(own_strings, shown))
    assert {text for text in left if "\n" in text} == set()


@each_of(forms())
def test_sdk_type_without_its_content_is_of_its_type(case: Case) -> None:
    """What names a setting of a provider stays: any other text there is refused."""
    given = conversation(case)
    messages, _ = decode_all(given.messages, case.format)
    for payload in encode_all([without_content(messages[given.sample.message])], case.format):
        assert conforms_to_sdk(payload, case.format), payload


@each_case
async def test_sdk_type_without_a_redacted_text_keeps_all_else(case: Case, store: Any) -> None:
    """A text is replaced where it stands; reasoning that has it goes."""
    given = conversation(case)
    service = await opened(store, case, given)
    for secret in sorted(text for text in own_strings(given.sample_payload) if "\n" in text)[:1]:
        await service.redact_text("s", secret)
        shown = list(await read_again(store))
        assert secret not in json.dumps(shown)
        assert check(shown, case.format) == []
        for before, after in zip(given.messages, shown, strict=True):
            if before.get("type") == "reasoning" and before != after:
                assert after == {"role": "assistant", "content": REDACTED}
            else:
                assert [str(each) for each in changes(before, after) if not is_without(each, secret)] == []


def is_without(change: Change, secret: str) -> bool:
    if change.kind == "text":
        return json.dumps(change.after) == json.dumps(change.before).replace(json.dumps(secret)[1:-1], REDACTED)
    return change.kind == "dropped" and secret in change.before.values()
