"""The user's own words: what in the user's messages programs wrote, recognised by its place and form in each client.

A client puts more under the user's role than the user wrote: project rules, the environment, examples, reminders, and
the text of a command. `CLIENT_FORMS` lists every form that is recognised. All else is the user's, whatever its tags.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Literal, NamedTuple

from .frame import is_from_user, is_note
from .parts import Message, Text

Place = Literal["tag", "text", "notice", "end", "rules", "example", "command"]
"""Where a form stands: a tag at the beginning or the end of a text; a whole text, by its opening; a line alone; the end
of a request; rules for the whole project, which are the user's but no request; the last message of an exchange that
only sets an example; the call of a command, whose text follows."""


class ClientForm(NamedTuple):
    """A form of text that a client writes in the user's name."""

    client: str
    what: str
    where: Place
    pattern: str
    """Name of the tag, or how the text begins."""
    example: str
    own: str = ""
    """What in the example is the user's."""


CLIENT_FORMS: tuple[ClientForm, ...] = tuple(
    ClientForm(**form)
    for form in tomllib.loads(files(__package__).joinpath("client_forms.toml").read_text("utf-8"))["form"]
)
"""Every form that is recognised."""


def _patterns(place: Place) -> str:
    return "|".join(dict.fromkeys(form.pattern for form in CLIENT_FORMS if form.where == place))


_TAG = re.compile(rf"\s*<({_patterns('tag')})\b[^<>]*>")
_TEXT = re.compile(rf"\s*(?:{_patterns('text')}|{_patterns('example')})")
_NOTICE = re.compile(rf"\s*\[(?:{_patterns('notice')})[^\]\n]{{0,120}}\]\s*$")
_END = re.compile(rf"\n\s*(?={_patterns('end')})")
_RULES = re.compile(_patterns("rules"))
_EXAMPLE = re.compile(rf"\s*(?:{_patterns('example')})")
_COMMAND = re.compile(rf"\s*<(?:{_patterns('command')})>")
_COMMAND_PARTS = re.compile(r"<command-(name|args)>(.*?)</command-\1>", re.DOTALL)
_SLASH_COMMAND = re.compile(r"/[\w:-]+")
"""A command to the chat program, or one without words of the user's."""
_MAX_EXAMPLES = 24
"""Messages among which an exchange that sets an example is searched."""
_MAX_TOPICS, _MAX_TOPIC_CHARS = 5, 80


def split_program_text(text: str) -> tuple[str, str]:
    """Splits a text of the user's side into the user's own words and what a program put before or after them."""
    if _NOTICE.match(text) or _TEXT.match(text):
        return "", text
    if _COMMAND.match(text):
        found = dict(_COMMAND_PARTS.findall(text))
        return f"{found.get('name', '').strip()} {' '.join(found.get('args', '').split())}".strip(), text
    at = 0
    while tag := _TAG.match(text, at):
        end = text.find(f"</{tag[1]}>", tag.end())
        if end < 0:
            break
        at = end + len(f"</{tag[1]}>")
    own, program = text[at:], text[:at]
    if last := _END.search(own):
        own, program = own[: last.start()], program + own[last.start() :]
    return own.strip(), program


def calls_command(text: str) -> bool:
    """Whether a text calls a command whose own text follows, in the same message or the next."""
    return _COMMAND.match(text) is not None


def is_request(text: str) -> bool:
    """Whether the user's words ask for something: rules for the project do not, nor does a command alone."""
    return bool(text) and not (_RULES.match(text) or _SLASH_COMMAND.fullmatch(text))


def examples_end(messages: Sequence[Message]) -> int:
    """Returns the index after the exchanges at the beginning that only set an example; 0 without any."""
    end = 0
    for index, message in enumerate(messages[:_MAX_EXAMPLES]):
        if message.role == "user" and _EXAMPLE.match(message.text):
            after = index + 1 < len(messages) and messages[index + 1].role == "assistant"
            end = index + 2 if after and not messages[index + 1].calls else index + 1
    return end


def own_words(message: Message) -> str:
    """Returns the user's own words in a message; empty if a program wrote all of it."""
    if not is_from_user(message) or is_note(message):
        return ""
    words: list[str] = []
    for part in message.parts:
        if type(part) is Text:
            words.append(split_program_text(part.text)[0])
            if calls_command(part.text):
                break  # the text of the command follows
    return "\n".join(filter(None, words))


def first_request(messages: Iterable[Message]) -> str:
    """Returns the first request, by which the conversation is known; a command alone if there is no other."""
    listed = list(messages)
    others, after_command = [], False
    for message in listed[examples_end(listed) :]:
        if message.role == "assistant":
            after_command = False
        elif words := "" if after_command else own_words(message):
            if is_request(words):
                return words
            if not _RULES.match(words):
                others.append(words)
        after_command = after_command or (message.role == "user" and calls_command(message.text))
    return others[0] if others else ""


def user_topics(dropped: Sequence[Message], carried: Sequence[str] = ()) -> list[str]:
    """Returns the first words of the first and of the newest user messages."""
    topics = [*carried, *(_first_words(words) for m in dropped if (words := own_words(m)))]
    return topics if len(topics) <= _MAX_TOPICS else [topics[0], *topics[-_MAX_TOPICS + 1 :]]


def _first_words(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _MAX_TOPIC_CHARS else words[: _MAX_TOPIC_CHARS - 1].rstrip() + "…"
