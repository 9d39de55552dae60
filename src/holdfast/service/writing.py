"""From what people append to the events that a log takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ..errors import InvalidInput
from ..events import Event, Kind, new_id, now
from ..messages import COMMON, Json, Message, decode_all, encode_all, lift_media
from ..tokens import Estimator, Usage, read_usage
from ..view import View


class Draft(msgspec.Struct):
    """Events that are ready to be appended, and the media that goes with them."""

    events: list[Event]
    media: dict[str, str]


def draft(
    given: Any,
    view: View,
    *,
    lane: str | None,
    ids: str | Sequence[str] | None,
    usage: Any,
    synthetic: bool,
    format: str | None,
    source: str | None = None,
    aside: bool = False,
) -> Draft:
    """Message events for one or several messages; calls that these leave behind are closed first."""
    messages, _ = decode_all(_several(given), format)
    if not messages:
        raise InvalidInput("There is nothing to append: hand in a message, or a list of at least one.")
    names = _names(ids, len(messages))
    counted = None if usage is None else read_usage(usage)
    out = Draft([], {})
    if closing := view.closing(messages[0]):
        for place, message in enumerate(_payload_messages(closing, view.format)):
            _add(out, message, view, lane, f"{names[0]}~{place}", closes=True)
    last = len(messages) - 1
    for place, (message, name) in enumerate(zip(messages, names, strict=True)):
        counts = counted if place == last else None
        _add(out, message, view, lane, name, usage=counts, synthetic=synthetic, source=source, aside=aside)
    return out


def _several(given: Any) -> Iterable[Any]:
    if isinstance(given, Mapping | Message | str) or hasattr(given, "model_dump"):
        return [{"role": "user", "content": given}] if isinstance(given, str) else [given]
    if not isinstance(given, Iterable):
        raise InvalidInput(f"A message is a dict, an SDK's object or a holdfast Message, not {type(given).__name__}.")
    return given


def _names(ids: str | Sequence[str] | None, count: int) -> list[str]:
    if ids is None:
        return [new_id() for _ in range(count)]
    if isinstance(ids, str):
        return [ids, *(f"{ids}.{place}" for place in range(1, count))]
    if len(ids) != count:
        raise InvalidInput(f"There are {count} messages and {len(ids)} ids: give one id, or one for each.")
    return list(ids)


def _payload_messages(message: Message, format: str) -> list[Message]:
    """A neutral message as its format would have it sent, and read back."""
    return decode_all(encode_all([message], format), None if format == COMMON else format)[0]


def _add(
    out: Draft,
    message: Message,
    view: View,
    lane: str | None,
    name: str,
    *,
    usage: Usage | None = None,
    synthetic: bool = False,
    closes: bool = False,
    source: str | None = None,
    aside: bool = False,
) -> None:
    rendered = [message] if message.raw is not None or _is_plain(message) else _payload_messages(message, view.format)
    for place, part in enumerate(rendered):
        payload, media = lift_media(_payload(part))
        body: Json = {"message": payload}
        if part.format not in (None, COMMON):
            body["format"] = part.format
        body |= _measured(part, view.gauge.estimator)
        if media:
            body["media"] = sorted(media)
        if usage is not None:
            body["usage"] = msgspec.to_builtins(usage)
        if synthetic:
            body["synthetic"] = True
        if aside:
            body["aside"] = True
        if closes:
            body["closes"] = True
        if source is not None:
            body["source"] = source
        out.media |= media
        out.events.append(Event(f"{name}.{place}" if place else name, Kind.MESSAGE, now(), body, lane))


def _is_plain(message: Message) -> bool:
    return message.role in ("user", "assistant") and _payload(message)["content"] is not None


def _payload(message: Message) -> Json:
    if message.raw is not None:
        return message.raw
    texts = message.parts
    only = getattr(texts[0], "text", None) if len(texts) == 1 and type(texts[0]).__name__ == "Text" else None
    return {"role": message.role, "content": only or None}


def _measured(message: Message, estimator: Estimator) -> Json:
    """Counted once, ever: the units go into the log with the message (L13)."""
    return {"units": estimator.measure(message), "counter": estimator.name}
