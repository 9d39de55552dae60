"""A conversation as a neutral script, so that one story can be rendered in every wire format."""

from dataclasses import dataclass
from typing import Any, Literal

__all__ = [
    "Call",
    "Media",
    "Model",
    "Result",
    "Results",
    "Step",
    "Story",
    "Summary",
    "System",
    "Text",
    "Thought",
    "User",
]


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Media:
    form: Literal["image", "link", "file"]


@dataclass(frozen=True)
class Thought:
    """Reasoning with its signature or encrypted content, different for each thought."""

    text: str
    seal: str
    redacted: bool = False


@dataclass(frozen=True)
class Call:
    id: str
    name: str
    args: dict[str, Any]


@dataclass(frozen=True)
class Result:
    id: str
    name: str
    text: str
    failed: bool = False
    media: Media | None = None


@dataclass(frozen=True)
class System:
    text: str


@dataclass(frozen=True)
class Summary:
    """The result of an earlier compaction: the vendor's own block if there is one."""

    text: str


@dataclass(frozen=True)
class User:
    parts: tuple[Text | Media, ...]


@dataclass(frozen=True)
class Model:
    parts: tuple[Thought | Text | Call, ...]

    @property
    def calls(self) -> tuple[Call, ...]:
        return tuple(part for part in self.parts if isinstance(part, Call))


@dataclass(frozen=True)
class Results:
    results: tuple[Result, ...]


Step = System | Summary | User | Model | Results


@dataclass(frozen=True)
class Story:
    """Steps, and the options of the client that recorded them.

    `terse` clients send a lone text as a string; `ids` keeps the optional ids of items and calls, and is
    the AI SDK after its version 4; `split` puts every tool result in its own message if the format allows
    it. A `careless` client sends empty messages and split turns as they come; `extras` adds fields no
    provider knows.
    """

    steps: tuple[Step, ...]
    terse: bool = True
    ids: bool = True
    split: bool = False
    careless: bool = False
    extras: bool = False
