"""Detection of overflow in the error messages of every provider."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.messages import Tool
from holdfast.models import classify, is_overflow, overflowed_silently
from holdfast.models.calls import Failure, Finish, ModelCall, Reply, StepCall, StepReply
from holdfast.models.overflow import is_doubtful_overflow, prompt_characters
from holdfast.tokens import Usage

LLAMA = {"error": {"code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 1407, "n_ctx": 256}}


@pytest.mark.parametrize(
    ("message", "window"),
    [
        ("prompt is too long: 213462 tokens > 200000 maximum", 200_000),
        ("prompt is too long", None),
        ("input length and `max_tokens` exceed context limit: 197202 + 21333 > 200000, decrease input", 200_000),
        ("request_too_large: Request exceeds the maximum size", None),
        ("ValidationException: Input is too long for requested model.", None),
        ("Your input exceeds the context window of this model. Please adjust your input and try again.", None),
        ("context_length_exceeded", None),
        ("Context length exceeded", None),
        ("This model's maximum context length is 128000 tokens. However, your messages resulted in 128,400.", 128_000),
        ("This model's maximum context length is 2048 tokens. However, your request has 8 input tokens", 2_048),
        ("'max_tokens' is too large: 2045. This model's maximum context length is 4,096 tokens and your", 4_096),
        ("The prompt exceeds the model's maximum context length of 8,192 tokens", 8_192),
        ("Input exceeds maximum context length (32768)", 32_768),
        ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 1_048_576),
        ("Input token count of 70000 exceeds the maximum", None),
        ("This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131_072),
        ("Please reduce the length of the messages or completion.", None),
        ("Please reduce the length of the input prompt", None),
        ("prompt token count of 140000 exceeds the limit of 128000", 128_000),
        ("the request exceeds the available context size (4096 tokens), try increasing it", 4_096),
        ("exceed_context_size_error", None),
        ("prompt has 9,000 tokens, but the configured context size is 8,192 tokens", 8_192),
        ("The number of tokens to keep from the initial prompt is greater than the context length", None),
        ("However, the model context length is only 2048 tokens", 2_048),
        ("Input length 9000 exceeds the maximum allowed context length 8192", 8_192),
        ("prompt too long; exceeded max context length by 400 tokens", None),
        ("prompt too long; exceeded context length", None),
        ("invalid params, context window exceeds limit (2013)", None),
        ("Invalid request: Your request exceeded model token limit: 262144", 262_144),
        ("Prompt contains 40000 tokens, too large for model with 32768 maximum context length", 32_768),
        ("The input (5000 tokens) is longer than the model's context length (4096 tokens).", 4_096),
        ("Prompt exceeds the maximum allowed input length of 16,384 tokens.", 16_384),
        ("The maximum input length is 4096 tokens", 4_096),
        ("tokens in request more than max tokens allowed", None),
        ("the model's maximum context limit is 200000", 200_000),
        ("Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000", 272_000),
        ("`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000", 4_096),
        ("Please reduce it. Current length is 9000 while limit is 8192", 8_192),
        ("model_context_window_exceeded", None),
        ("413 Request Entity Too Large", None),
        ("This endpoint's maximum context length is 131072 tokens. However, you requested about 140321", 131_072),
        ("This model's maximum context length is 65536 tokens. However, you requested 122946 tokens (112946 in the "
         "messages, 10000 in the completion). Please reduce the length of the messages or completion.", 65_536),
        ("Unable to submit request because the input token count is 32881 but model only supports up to 32768. Reduce "
         "the input token count and try again.", 32_768),
        ("The prompt is too long: 61443, model maximum context length: 32767", 32_767),
        ("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]", 129_024),
        ("Prompt exceeds max length", None),
        ("Input validation error: `inputs` must have less than 4096 tokens. Given: 5000", 4_096),
        ("the input length exceeds the context length", None),
        ("the request exceeds the available context size. try increasing the context size or shift it", None),
        ("litellm.ContextWindowExceededError: litellm.BadRequestError: the prompt does not fit", None),
        ("too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000.", None),
        ("400 status code (no body)", None),
        ("413 (no body)", None),
    ],
)  # fmt: skip
def test_is_overflow_messages_of_each_provider(message: str, window: int | None) -> None:
    assert is_overflow(400, message)
    assert classify(400, message).window == window
    assert is_overflow(400, "Provider error", {"error": {"message": message}}) or "no body" in message


@pytest.mark.parametrize("status", [None, 400, 413, 422, 500])
def test_strong_message_is_overflow_with_any_status(status: int | None) -> None:
    assert classify(status, "prompt is too long: 2 tokens > 1 maximum").kind == "overflow"


@pytest.mark.parametrize("message", ["Too many tokens in the request", "Token limit exceeded"])
def test_weak_message_is_overflow_only_with_matching_status(message: str) -> None:
    assert is_overflow(400, message) and is_overflow(413, message)
    assert not any(is_overflow(status, message) for status in (None, 403, 429, 500, 503))


def test_is_overflow_codes_and_numbers_in_the_body() -> None:
    found = classify(400, "the request does not fit", LLAMA)
    assert (found.kind, found.window) == ("overflow", 256)
    assert is_overflow(400, "Bad request", {"error": {"code": "context_length_exceeded"}})
    assert is_overflow(None, "failed", {"code": "context_length_exceeded", "message": "failed"})


def test_is_overflow_status_without_message() -> None:
    assert is_overflow(400, "") and is_overflow(413, "")
    assert is_overflow(413, "Payload Too Large")
    assert not any(is_overflow(status, "") for status in (None, 401, 422, 429, 500))


@pytest.mark.parametrize(
    ("status", "message", "body"),
    [
        (429, "Rate limit reached for tokens per min. Please reduce the length of the messages.", None),
        (429, "This request would exceed your rate limit of 40,000 input tokens per minute", None),
        (429, "Too many requests: prompt is too long", None),
        (400, "ThrottlingException: Too many tokens, please wait before trying again.", None),
        (400, "Throttling error: too many tokens", None),
        (503, "Service unavailable: context length exceeded", None),
        (400, "Invalid 'user': string too long. Expected a string with maximum length 64", None),
        (400, "Invalid 'input': string too long.", {"error": {"code": "string_above_max_length"}}),
        (400, "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens", None),
        (400, "max_tokens is too large: 99999. This model supports at most 16384 completion tokens", None),
        (400, "image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes", None),
        (400, "Unknown parameter: 'foo'", None),
        (429, "This request would exceed your organization's rate limit of 30,000 input tokens per minute.", None),
        (429, "Number of request tokens has exceeded your per-minute rate limit", None),
        (429, "ThrottlingException: Too many tokens per day, please wait before trying again.", None),
        (429, "Quota exceeded for metric: generate_content_free_tier_input_token_count, limit: 250000", None),
        (400, "A maximum of 4 blocks with cache_control may be provided. Found 5.", None),
        (400, "Invalid 'tools': array too long. Expected an array with maximum length 128, but got 130 instead.", None),
        (400, "tools.0.custom.name: String should have at most 64 characters", None),
        (400, "messages: text content blocks must be non-empty", None),
        (400, "The response was filtered due to the prompt triggering the content management policy.", None),
        (400, "`tool_use` ids were found without `tool_result` blocks immediately after: toolu_01", None),
        (400, "Function call is missing a thought_signature in functionCall parts.", None),
        (529, "Overloaded", None),
        (422, "bad", {"detail": [{"msg": "Field required", "input": "he wrote: prompt is too long"}]}),
    ],
)  # fmt: skip
def test_is_overflow_ignores_similar_messages(status: int, message: str, body: Any) -> None:
    assert not is_overflow(status, message, body)


def test_request_over_the_limit_per_minute_is_overflow() -> None:
    words = "Request too large for gpt-x on tokens per min (TPM): Limit 30000, Requested {}. Reduce it."
    assert classify(429, words.format(38124), {"code": "rate_limit_exceeded"}).kind == "overflow"
    assert classify(429, words.format(28124), {"code": "rate_limit_exceeded"}).kind == "transport"


@pytest.mark.parametrize(
    ("usage", "finish", "window", "overflowed"),
    [
        (Usage(150), "stop", 100, True),
        (Usage(50, 5, cache_read=60), "stop", 100, True),
        (Usage(100, 5), "stop", 100, False),
        (Usage(99, 0), "length", 100, True),
        (Usage(98, 0), "length", 100, False),
        (Usage(99, 1), "length", 100, False),
        (Usage(99, 0), "stop", 100, False),
        (Usage(999), "stop", None, False),
        (None, "length", 100, False),
    ],
)
def test_overflowed_silently(usage: Usage | None, finish: Finish, window: int | None, overflowed: bool) -> None:
    assert overflowed_silently(Reply("", finish, usage), window) is overflowed
    assert overflowed_silently(StepReply((), finish=finish, usage=usage), window) is overflowed


def test_is_overflow_hostile_message_is_fast() -> None:
    assert not is_overflow(400, "tokens " * 200_000)
    assert not is_overflow(400, "input length " + "exceeds" * 200_000)


@pytest.mark.parametrize("why", ["Error code: 413", "(HTTP 400)", "Payload refused. (HTTP 413)"])
def test_bare_status_with_short_prompt_is_doubtful(why: str) -> None:
    """A prompt that fits every window is too long only if the message says so."""
    failure = Failure("overflow", why)
    assert is_doubtful_overflow(failure, prompt_characters(ModelCall("a short question")))
    assert not is_doubtful_overflow(failure, prompt_characters(ModelCall("a long one " * 2_000)))
    assert not is_doubtful_overflow(
        Failure("overflow", "prompt is too long (HTTP 400)"), prompt_characters(ModelCall("a short question"))
    )
    assert not is_doubtful_overflow(
        Failure("overflow", why, window=512), prompt_characters(ModelCall("a short question"))
    )
    assert not is_doubtful_overflow(Failure("transport", why), prompt_characters(ModelCall("a short question")))


def test_step_length_includes_messages_system_and_tools() -> None:
    failure = Failure("overflow", "Error code: 413")
    short, long = {"role": "user", "content": "short"}, {"role": "user", "content": "a long one " * 2_000}
    tool = Tool("look", "Looks.", {"type": "object", "description": "x" * 9_000})
    assert is_doubtful_overflow(failure, prompt_characters(StepCall([short], "Be brief.")))
    assert not is_doubtful_overflow(failure, prompt_characters(StepCall([short, long])))
    assert not is_doubtful_overflow(failure, prompt_characters(StepCall([short], tools=(tool,))))
