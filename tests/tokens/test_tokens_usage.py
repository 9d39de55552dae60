"""P3: input + output + cache read + cache write, in any provider's field names."""

from __future__ import annotations

from typing import Any

import anthropic.types as claude
import google.genai.types as google
import pytest
from openai.types import CompletionUsage

from holdfast.errors import InvalidInput
from holdfast.tokens import Usage, read_usage


@pytest.mark.parametrize(
    ("given", "usage"),
    [
        (Usage(1, 2, 3, 4), Usage(1, 2, 3, 4)),
        ({"input": 1, "output": 2, "cache_read": 3, "cache_write": 4}, Usage(1, 2, 3, 4)),
        (
            {"input_tokens": 1, "output_tokens": 2, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 4},
            Usage(1, 2, 3, 4),
        ),
        ({"input_tokens": 1, "output_tokens": 2, "cache_read_input_tokens": None}, Usage(1, 2)),
        ({"input_tokens": 9, "output_tokens": None}, Usage(9)),
        ({"input_tokens": 9, "input_tokens_details": {"cached_tokens": 8}, "output_tokens": 2}, Usage(9, 2)),
        ({"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}, Usage(9, 2)),
        ({"promptTokenCount": 9, "candidatesTokenCount": 2, "totalTokenCount": 11}, Usage(9, 2)),
        ({"prompt_token_count": 9, "candidates_token_count": 2}, Usage(9, 2)),
        (claude.Usage(input_tokens=1, output_tokens=2, cache_read_input_tokens=3), Usage(1, 2, 3)),
        (CompletionUsage(prompt_tokens=9, completion_tokens=2, total_tokens=11), Usage(9, 2)),
        (google.GenerateContentResponseUsageMetadata(prompt_token_count=9, candidates_token_count=2), Usage(9, 2)),
    ],
    ids=["ours", "our-words", "anthropic", "anthropic-null", "null", "responses", "chat", "gemini", "gemini-sdk-words",
         "anthropic-object", "openai-object", "gemini-object"],
)  # fmt: skip
def test_read_usage_accepts_each_providers_field_names(given: Any, usage: Usage) -> None:
    assert read_usage(given) == usage


def test_usage_total_is_context_size_after_reply() -> None:
    assert Usage(1, 20, 300, 4_000).total == 4_321


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "not nothing"),
        ({"inptu": 5}, "not inptu"),
        (7, "not int"),
        ({"input": -1}, "has -1 for input"),
        ({"input": "many"}, "has 'many' for input"),
        ({"input": float("nan")}, "has nan for input"),
        ({"input": True}, "has True for input"),
    ],
)
def test_read_usage_invalid_argument_is_rejected(given: Any, expected: str) -> None:
    with pytest.raises(InvalidInput, match=expected):
        read_usage(given)
