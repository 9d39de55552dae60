"""The offline tokenizer, the heuristic without it, and custom estimators (S15)."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.messages import Media, Message, Reasoning, Text, ToolCall, ToolResult, user
from holdfast.tokens import ENCODINGS, CallableEstimator, CharsPerPiece, Estimator, Tokenizer, estimator_for, estimators
from holdfast.tokens.estimators import (
    CALL_OVERHEAD,
    CHUNK_CHARACTERS,
    IMAGE_TOKENS,
    MESSAGE_OVERHEAD,
    heuristic_count,
    load_counter,
    load_vocabulary,
)

O200K = Tokenizer()


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("hello world", 2),
        ("The quick brown fox jumps over the lazy dog.", 10),
        ("日本語のテキスト", 6),
        ("<|endoftext|>", 7),
        ("<|im_start|>system", 7),
        ("a\x00b", 3),
        (" " * 100, 2),
    ],
)
def test_tokenizer_o200k_counts_exactly(text: str, tokens: int) -> None:
    """The name of a special token in a message is ordinary text."""
    assert O200K.measure_text(text) == tokens


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_tokenizer_every_encoding_loads_and_counts(encoding: str) -> None:
    tokenizer = Tokenizer(encoding)
    assert tokenizer.name == encoding
    assert tokenizer.measure_text("hello world") in (2, 3)
    assert tokenizer.measure_text("<|endoftext|>") > 3
    assert tokenizer.measure_text("\ud83d lone") > 0


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_tokenizer_special_tokens_of_every_vocabulary_are_plain_text(encoding: str) -> None:
    vocabulary, count = load_vocabulary(encoding), load_counter(encoding)
    for name in vocabulary.special_tokens():
        for text in (name, f"before {name}after"):
            assert count(text) == len(vocabulary.encode_ordinary(text)), text


@given(st.text(), st.sampled_from(ENCODINGS))
def test_tokenizer_counts_what_the_vocabulary_encodes(text: str, encoding: str) -> None:
    assert load_counter(encoding)(text) == len(load_vocabulary(encoding).encode_ordinary(text))


@given(st.text(st.characters(exclude_categories=())))
def test_tokenizer_any_text_is_counted(text: str) -> None:
    """Lone surrogates too: they count as the replacement character sent instead."""
    assert O200K.measure_text(text) <= len(text.encode(errors="replace"))
    assert (O200K.measure_text(text) == 0) == (not text)


def test_tokenizer_lone_surrogate_counts_as_replacement_character() -> None:
    assert O200K.measure_text("a \ud83d b") == O200K.measure_text("a ? b")


TEXT = "let me look"
COST = O200K.measure_text(TEXT)


@pytest.mark.parametrize(
    ("parts", "tokens"),
    [
        ((), 0),
        ((Text(TEXT),), COST),
        ((Text(TEXT), Text(TEXT)), 2 * COST),
        ((Reasoning(TEXT),), COST),
        ((Media("image", data="A" * 100),), IMAGE_TOKENS),
        ((Media("file", data="A" * 400_000),), 10_000),
        ((Media("file", url="https://example.org/a.pdf"),), IMAGE_TOKENS),
        ((ToolCall("c1", "read", {"a": 1}),), O200K.measure_text('read{"a":1}') + CALL_OVERHEAD),
        ((ToolResult("c1", (Text(TEXT),)),), COST + CALL_OVERHEAD),
        ((ToolResult("c1", ()),), CALL_OVERHEAD),
        ((ToolResult("c1", (Media("image", data="A"),)),), O200K.measure_text('[""]') + CALL_OVERHEAD + IMAGE_TOKENS),
    ],
)
def test_tokenizer_message_counts_parts_and_overhead(parts: Any, tokens: int) -> None:
    assert O200K.measure(Message("user", parts)) == MESSAGE_OVERHEAD + tokens


ENGLISH = (
    "Compaction keeps a conversation inside the window of its model. What is archived stays in the log, where it can "
    "be searched and read back; what is kept starts at a user's message, so that no answer loses its question. "
)
CODE = """def decode(raw: Json) -> Message:
    role = ROLES[raw["role"]]
    if role == "tool":
        return Message("tool", (_result(raw),), name, raw)
    parts = [_part(part) for part in raw.get("content") or ()]
    return Message(role, tuple(parts), name, raw)
"""
CHINESE = "压缩让一段对话始终留在模型的窗口之内。被归档的内容仍然保存在日志里，可以搜索，也可以重新读取。"
JAPANESE = "会話はモデルの文脈に収まるように圧縮されます。保管された内容は記録に残り、いつでも検索できます。"
KOREAN = "대화는 모델의 창 안에 머물도록 압축됩니다. 보관된 내용은 기록에 남아 언제든지 검색할 수 있습니다."


@pytest.mark.parametrize(
    "text", [ENGLISH, CODE, CHINESE, JAPANESE, KOREAN], ids=["english", "code", "chinese", "japanese", "korean"]
)
def test_heuristic_count_is_within_35_percent(text: str) -> None:
    for times in (1, 20):
        assert heuristic_count(text * times) == pytest.approx(O200K.measure_text(text * times), rel=0.35)


def test_tokenizer_not_installed_uses_heuristic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "splintr", None)
    monkeypatch.setattr(estimators, "load_vocabulary", load_vocabulary.__wrapped__)
    load_counter.cache_clear()
    try:
        assert load_counter("o200k_base") is heuristic_count
        assert Tokenizer().measure_text("\ud83d lone") == 2
    finally:
        load_counter.cache_clear()


def test_tokenizer_unknown_encoding_error_lists_known_ones() -> None:
    with pytest.raises(InvalidInput, match="use one of o200k_base, cl100k_base"):
        Tokenizer("morse")


# -- estimators by argument (S15) ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["chars/4", "chars/4+4", "chars/3", *ENCODINGS])
def test_estimator_for_name_returns_it(name: str) -> None:
    found = estimator_for(name)
    assert isinstance(found, Estimator)
    assert found.name == name


def test_estimator_for_object_class_or_none() -> None:
    rule = CharsPerPiece()
    assert estimator_for(rule) is rule
    assert isinstance(estimator_for(CharsPerPiece), CharsPerPiece)  # type: ignore[arg-type]
    assert estimator_for(None).name == "o200k_base"


def test_callable_estimator_receives_text_of_each_part() -> None:
    seen: list[str] = []

    def count(text: str) -> int:
        seen.append(text)
        return len(text)

    message = Message(
        "assistant",
        (
            Text("a"),
            Text(""),
            Reasoning("b"),
            Media("image", data="A"),
            ToolCall("c1", "read", '{"a":  1}'),
            ToolResult("c1", (Text("c"), Text("d"))),
        ),
    )
    assert estimator_for(count).measure(message) == 1 + 1 + 11 + 3
    assert seen == ["a", "b", 'read{"a":1}', "c\nd"]


def test_callable_estimator_name_is_qualified_name() -> None:
    """Stored counts are used only for an estimator of the same name (L13)."""
    assert estimator_for(len).name == "callable:len"
    assert estimator_for(lambda text: 1).name != estimator_for(len).name


@pytest.mark.parametrize(("answer", "tokens"), [(3, 3), (0, 0), (2.0, 2), (2.1, 3), (True, 1)])
def test_callable_estimator_accepts_any_number(answer: Any, tokens: int) -> None:
    assert CallableEstimator(lambda text: answer).measure(user("hello")) == tokens


@pytest.mark.parametrize("answer", [-1, -0.5, None, "3", math.nan, math.inf, [3], 3j], ids=repr)
def test_callable_estimator_invalid_answer_is_rejected(answer: Any) -> None:
    with pytest.raises(InvalidInput, match="it must return a number of tokens, 0 or more"):
        CallableEstimator(lambda text: answer).measure(user("hello"))


@pytest.mark.parametrize("given", ["words", "", 4, [], object()], ids=["word", "empty", "number", "list", "object"])
def test_estimator_for_invalid_argument_is_rejected(given: Any) -> None:
    with pytest.raises(InvalidInput, match="estimator"):
        estimator_for(given)


def test_callable_estimator_error_propagates() -> None:
    def broken(text: str) -> int:
        raise LookupError("no vocabulary")

    counter: Callable[[str], int] = broken
    with pytest.raises(LookupError, match="no vocabulary"):
        estimator_for(counter).measure(user("hello"))


@pytest.mark.parametrize(
    "text",
    [
        "The tide table of Osterhaven says low water at 06:12, and 潮汐表说低水位. " * 4_000,
        "def berth(x):\n    return x\n\n" * 9_000,
        "low water " * 30_000,
    ],
    ids=["words", "code", "spaces"],
)
def test_tokenizer_huge_text_is_split_between_tokens(text: str) -> None:
    from splintr import Tokenizer as Vocabulary

    assert len(text) > 2 * CHUNK_CHARACTERS
    assert O200K.measure_text(text) == len(Vocabulary.from_pretrained("o200k_base").encode_ordinary(text))


def test_tokenizer_huge_text_without_split_point_is_counted() -> None:
    text = "⚓" * 3 * CHUNK_CHARACTERS
    assert O200K.measure_text(text) == pytest.approx(3 * O200K.measure_text("⚓" * CHUNK_CHARACTERS), rel=1e-3)
