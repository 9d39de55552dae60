"""A session that is long enough to be compacted, and somebody who listens: for tests of hooks."""

from __future__ import annotations

from typing import Any

from holdfast import AsUser, FreeText, KeepLast, MemoryStore, ScriptedModel, SessionService, Summary
from holdfast.hooks import CompactionEvent
from holdfast.stores import Log

SUMMARY = Summary(KeepLast(4), FreeText(), AsUser(prefix=""), verify=False, last_resort="unchanged")
WORDS = "goes on about the harbour and its ships and whatever else comes to mind " * 3
SAID = "They talked of the harbour."


class Heard(list[CompactionEvent]):
    """A listener that remembers."""

    def __call__(self, event: CompactionEvent) -> None:
        self.append(event)

    @property
    def names(self) -> list[str]:
        """What was told, without the progress in between."""
        return [
            name for name in (type(event).__name__.removeprefix("Compaction") for event in self) if name != "Progress"
        ]

    def one(self, kind: type) -> Any:
        (found,) = [event for event in self if isinstance(event, kind)]
        return found


def message(name: str) -> dict[str, str]:
    return {"role": "user" if name[0] == "u" else "assistant", "content": f"{name} {WORDS}"}


async def go_on(service: SessionService, first: int = 1, turns: int = 6, session: str = "s") -> None:
    for number in range(first, first + turns):
        for who in "ua":
            await service.append(session, message(f"{who}{number}"), id=f"{who}{number}")


async def talk(hooks: Any = None, *, store: Log | None = None, says: Any = SAID, **options: Any) -> SessionService:
    """A service with a session of six turns, and a model that always says the same."""
    model = ScriptedModel(says, repeat=True)
    service = SessionService(store or MemoryStore(), summarizer=model, hooks=hooks, **options)
    await service.create(id="s", format="openai-chat")
    await go_on(service)
    return service


def calls(service: SessionService) -> list[Any]:
    """What the model was asked."""
    assert isinstance(service.model, ScriptedModel)
    return service.model.calls


async def seen(service: SessionService) -> list[str]:
    """The first word of each message of the context."""
    return [str(shown["content"]).split()[0] for shown in await service.context("s")]
