"""Sessions and recall as a user writes them, checked by mypy and pyright in their strict modes."""

from anthropic import Anthropic
from anthropic.types import MessageParam

from holdfast import (
    BlockingSessionService,
    Recall,
    SessionService,
    SlidingWindow,
    SQLiteStore,
    TokenCount,
    TurnCount,
    any_of,
    compact,
    open_store,
)
from holdfast.types import Request


def reply(client: Anthropic, messages: list[MessageParam]) -> str:
    result = compact(messages, budget=100_000, system="You look after berths.", usage={"input_tokens": 9})
    made = client.messages.create(model="claude-sonnet-5", max_tokens=900, messages=result.messages)
    return "".join(block.text for block in made.content if block.type == "text")


def often(request: Request) -> bool:
    return request.tokens > 1_000


async def keep(text: str) -> list[str]:
    async with SessionService("agent.db", preset="holdfast", window=200_000) as sessions:
        session = await sessions.create(system="You look after berths.", format="anthropic", owner="ada")
        events = await sessions.append(session.id, {"role": "user", "content": text})
        await sessions.compact(session.id, any_of(TurnCount(20), TokenCount(4_000)), SlidingWindow(max_events=10))
        result = await sessions.compact(session.id, often)
        print(result.outcome.value, result.version, events[0].id)
        context = await sessions.context(session.id)
        print(context.tokens, context.version, context.system, len(context.messages))
        async with sessions.turn(session.id, id="request-1") as turn:
            if not turn.done:
                await turn.say({"role": "user", "content": text})
        found = await Recall(sessions, session.id).search("berth", role="user", archived=True)
        await sessions.undo(session.id)
        return [f"{hit.reference} {hit.snippet}" for hit in found.hits]


def blocking() -> int:
    with BlockingSessionService(open_store("sqlite:///agent.db")) as sessions:
        return sessions.context(sessions.create().id).tokens


store: SQLiteStore = SQLiteStore("agent.db")
