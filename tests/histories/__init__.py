"""Random histories in every wire format, cheap enough to draw by the thousand.

A story is generated once, from a byte string, and rendered in each format: `wire` draws one rendering,
`everywhere` all of them. With `broken=False` the provider would accept it, except for pending calls at its
end; with `broken=True` it has some of the faults of real histories.

The strategies are cached: a new one in each example would be validated again.
"""

from functools import cache
from typing import Any

from hypothesis import strategies as st

from histories import ai_sdk, anthropic, gemini, openai_chat, openai_responses
from histories.breakage import broken as break_some
from histories.build import Writer
from histories.script import Story
from histories.tape import Tape

__all__ = ["PROFILES", "everywhere", "render", "stories", "wire"]

_RENDER = {
    "openai-chat": openai_chat.render,
    "openai-responses": openai_responses.render,
    "anthropic": anthropic.render,
    "gemini": gemini.render,
    "ai-sdk": ai_sdk.render,
}
PROFILES = tuple(_RENDER)
_SCENE = st.binary(min_size=28, max_size=28)
_FEW, _SOME = st.lists(_SCENE, max_size=2), st.lists(_SCENE, max_size=8)
_SCENES = _FEW | _SOME | st.lists(_SCENE, min_size=9, max_size=18)
_FRAME = st.binary(min_size=64, max_size=64)  # client options, faults, first and last steps


@cache
def stories(broken: bool = False) -> st.SearchStrategy[Story]:
    """Draw a neutral script of 1 to about 60 steps, half of them under 20."""
    return st.builds(_story, frame=_FRAME, scenes=_SCENES, word=st.text(max_size=12), broken=st.just(broken))


@cache
def wire(profile: str, broken: bool = False) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Draw a history in the format of `profile`."""
    return stories(broken).map(lambda story: render(story, profile))


@cache
def everywhere(broken: bool = False) -> st.SearchStrategy[dict[str, list[dict[str, Any]]]]:
    """Draw one story rendered in every format, by profile."""
    return stories(broken).map(lambda story: {profile: render(story, profile) for profile in PROFILES})


def render(story: Story, profile: str) -> list[dict[str, Any]]:
    """Render `story` in the format of `profile`."""
    messages = _RENDER[profile](story)
    for message in messages[::3] if story.extras else ():
        message["x_trace"] = {"span": "7f", "retries": 0}
    return messages


def _story(frame: bytes, scenes: list[bytes], word: str, broken: bool) -> Story:
    habits, faults, edges = Tape(frame[:5], word), Tape(frame[5:32], word), Tape(frame[32:], word)
    steps = Writer(edges).script([Tape(scene, word) for scene in scenes])
    return Story(
        steps=tuple(break_some(steps, faults) if broken else steps),
        terse=not habits.below(2),
        ids=not habits.below(2),
        split=bool(habits.below(2)),
        careless=broken and habits.rarely(2),
        extras=broken and habits.rarely(3),
    )
