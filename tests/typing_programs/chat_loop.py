"""An OpenAI loop as a user writes it, checked by mypy and pyright in their strict modes."""

import asyncio
from typing import assert_type

from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletionMessageParam

from holdfast import CompactionResult, Keeper, Outcome, acompact, check, compact, preset
from holdfast.compaction import Policy
from holdfast.hooks import CompactionEvent, Hooks, Veto


def shorten(messages: list[ChatCompletionMessageParam]) -> list[ChatCompletionMessageParam]:
    result = compact(messages, budget=100_000, instructions="keep the schema decisions")
    if result.outcome is Outcome.CANNOT_FIT:
        raise RuntimeError(result.why)
    print(result.tokens_before - result.tokens_after, [event.id for event in result.archived])
    return result.messages


def ask(client: OpenAI, messages: list[ChatCompletionMessageParam]) -> str:
    reply = client.chat.completions.create(model="gpt-5-mini", messages=shorten(messages))
    text: str = reply.choices[0].message.content or ""
    return text


def show(event: CompactionEvent) -> None:
    print(type(event).__name__)


async def answer(client: AsyncOpenAI, history: list[ChatCompletionMessageParam]) -> str | None:
    policy: Policy = preset("codex", limit=160_000)
    keeper = Keeper(model="gpt-5-mini", format="openai-chat", preset=policy, listen=show)
    context = await keeper.prepare_step(history)
    print(context.tokens, len(context), context.format)
    reply = await client.chat.completions.create(model="gpt-5-mini", messages=history)
    await keeper.on_step_finish(reply, usage=reply.usage)
    text: str | None = reply.choices[0].message.content
    return text


async def later(messages: list[ChatCompletionMessageParam]) -> CompactionResult[ChatCompletionMessageParam]:
    hooks = Hooks(before=lambda before: Veto("not now") if before.origin == "auto" else None)
    first = await acompact(messages, budget=50_000, hooks=hooks)
    for problem in check(first.messages, "openai-chat"):
        print(problem)
    return await acompact(messages, budget=50_000, previous=first.checkpoint)


def plain(messages: list[dict[str, str]]) -> list[dict[str, str]]:
    result = compact(messages, budget=1_000, summarizer=lambda prompt: prompt[:100])
    assert_type(result.messages, list[dict[str, str]])
    return result.messages


if __name__ == "__main__":
    asyncio.run(answer(AsyncOpenAI(), []))
