"""Message events from what callers append."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ..context import View
from ..context.events import Event, EventKind, new_id, now
from ..errors import InvalidInput
from ..messages import COMMON, Json, Message, Text, decode_all, encode_all, extract_media
from ..messages.frameworks import framework_of
from ..tokens import Estimator, Usage, read_usage

if TYPE_CHECKING:
    from ..types import MessageLike
    from .live import LiveSession


class MessageEvents(msgspec.Struct):
    """Events to append in one step, with their media by digest."""

    events: list[Event]
    media: dict[str, str]


def message_events(
    given: MessageLike | Iterable[MessageLike],
    view: View,
    *,
    lane: str | None,
    ids: str | Sequence[str] | None = None,
    usage: Any = None,
    model: str | None = None,
    synthetic: bool = False,
    format: str | None,
    source: str | None = None,
    aside: bool = False,
    made_on: str | None = None,
) -> MessageEvents:
    """Returns events for one or several messages, preceded by what closes calls that these leave open.

    `made_on` is the checkpoint ("" for none) of the request that a reply answers, if another one is in force by now.
    """
    messages, _ = decode_all(_as_list(given), format)
    if not messages:
        raise InvalidInput("There is nothing to append: pass a message, or a list of at least one.")
    names = _event_ids(ids, len(messages))
    counted = None if usage is None else read_usage(usage)
    out = MessageEvents([], {})
    closings = [sent for closing in view.closings(messages[0]) for sent in _as_sent(closing, view.format)]
    for index, message in enumerate(closings):
        _add(out, message, view, lane, f"{names[0]}~{index}", closes=True)
    last = len(messages) - 1
    for index, (message, name) in enumerate(zip(messages, names, strict=True)):
        _add(
            out,
            message,
            view,
            lane,
            name,
            usage=counted if index == last else None,
            model=model,
            made_on=made_on,
            synthetic=synthetic,
            source=source,
            aside=aside,
        )
    return out


async def new_events(live: LiveSession, ready: MessageEvents) -> list[Event]:
    """Returns the events to append; of a retry without the closing results, which may be for its own calls."""
    own = [event for event in ready.events if "closes" not in event.body]
    retried = len(own) < len(ready.events) and await live.events([own[0].id])
    return own if retried else ready.events


def _as_list(given: Any) -> Iterable[Any]:
    if isinstance(given, Mapping | Message | str) or hasattr(given, "model_dump") or framework_of(given) is not None:
        return [{"role": "user", "content": given}] if isinstance(given, str) else [given]
    if not isinstance(given, Iterable):
        raise InvalidInput(f"A message is a dict, an SDK object or a holdfast Message, not {type(given).__name__}.")
    return given


def _event_ids(ids: str | Sequence[str] | None, count: int) -> list[str]:
    if ids is None:
        return [new_id() for _ in range(count)]
    if isinstance(ids, str):
        return [ids, *(f"{ids}.{index}" for index in range(1, count))]
    if len(ids) != count:
        raise InvalidInput(f"There are {count} messages and {len(ids)} ids: give one id, or one for each.")
    return list(ids)


def _as_sent(message: Message, format: str) -> list[Message]:
    """Encodes a neutral message for its wire format and decodes it again: it may become several."""
    return decode_all(encode_all([message], format), None if format == COMMON else format)[0]


def _add(
    out: MessageEvents,
    message: Message,
    view: View,
    lane: str | None,
    name: str,
    *,
    usage: Usage | None = None,
    model: str | None = None,
    made_on: str | None = None,
    synthetic: bool = False,
    closes: bool = False,
    source: str | None = None,
    aside: bool = False,
) -> None:
    rendered = [message] if message.raw is not None or _is_plain(message) else _as_sent(message, view.format)
    for index, part in enumerate(rendered):
        payload, media = extract_media(_payload(part))
        body: Json = {"message": payload}
        if part.format not in (None, COMMON):
            body["format"] = part.format
        body |= _measure(part, view.token_sums.estimator)
        if media:
            body["media"] = sorted(media)
        if usage is not None:
            body["usage"] = msgspec.to_builtins(usage)
            body |= {"model": model} if model else {}
        if synthetic:
            body["synthetic"] = True
        if aside:
            body["aside"] = True
        if closes:
            body["closes"] = True
        if source is not None:
            body["source"] = source
        if made_on is not None:
            body["made_on"] = made_on
        out.media |= media
        out.events.append(Event(f"{name}.{index}" if index else name, EventKind.MESSAGE, now(), body, lane))


def _is_plain(message: Message) -> bool:
    return message.role in ("user", "assistant") and _payload(message)["content"] is not None


def _payload(message: Message) -> Json:
    if (payload := message.payload) is not None:
        return payload
    only = message.parts[0] if len(message.parts) == 1 else None
    return {"role": message.role, "content": (only.text or None) if isinstance(only, Text) else None}


def _measure(message: Message, estimator: Estimator) -> Json:
    """The units of a message, stored with it: no message is counted twice."""
    return {"units": estimator.measure(message), "counter": estimator.name}
