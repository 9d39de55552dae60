"""Options that several commands share, and their value types.

Nothing of the library is imported here until a value is parsed, so that help and completion start fast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from ..io.arguments import parse_count, unknown_name_message

F = TypeVar("F", bound=Callable[..., Any])
Names = Sequence[str] | Callable[[], Sequence[str]]
_PROVIDERS = ("anthropic:", "openai:", "openai-responses:", "gemini:", "http://", "https://")


class NameChoice(click.ParamType):  # type: ignore[type-arg] # generic since click 8.4
    """A choice of names whose error suggests the closest one; click.Choice only lists them all.

    `names` may be a function, called when a value is parsed or completed.
    """

    def __init__(self, what: str, names: Names, hidden: Names = ()) -> None:
        self.name = what
        self._names, self._hidden = names, hidden

    @property
    def names(self) -> Sequence[str]:
        return self._names() if callable(self._names) else self._names

    @property
    def hidden(self) -> Sequence[str]:
        """Names that are accepted but not listed."""
        return self._hidden() if callable(self._hidden) else self._hidden

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.names and value not in self.hidden:
            raise click.UsageError(unknown_name_message(self.name, value, self.names, self.hidden), ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in self.names if name.startswith(incomplete)]


class CountType(click.ParamType):  # type: ignore[type-arg] # generic since click 8.4
    """A positive count in any of those spellings."""

    name = "n"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        return parse_count(str(value), param.opts[-1] if param else "a limit")


def estimator_names() -> Sequence[str]:
    from ..tokens import ENCODINGS, CharsPerConversation, CharsPerMessage, CharsPerPiece

    return (*ENCODINGS, CharsPerPiece.name, CharsPerMessage.name, CharsPerConversation.name)


def _format_names() -> Sequence[str]:
    from ..messages import FORMATS

    return FORMATS


def _preset_names() -> Sequence[str]:
    from ..compaction.presets import PRESETS

    return tuple(PRESETS)


def complete_strategy(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes the last stage of a pipeline."""
    from ..strategies.names import STRATEGY_NAMES

    done, plus, last = incomplete.rpartition("+")
    return [CompletionItem(done + plus + name) for name in STRATEGY_NAMES if name.startswith(last)]


def _complete_summarizer(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in _PROVIDERS if name.startswith(incomplete)]


PRESET_NAME = NameChoice("preset", _preset_names, lambda: [name.replace("_", "-") for name in _preset_names()])
file_argument = click.argument("file", type=click.Path(readable=False), metavar="FILE")
model_option = click.option("--model", metavar="ID", help="Model whose window to use; default: the one in the file.")
estimator_option = click.option(
    "--estimator",
    type=NameChoice("estimator", estimator_names),
    metavar="NAME",
    help="Token estimator; default: the model's tokenizer.",
)
format_option = click.option(
    "--format",
    type=NameChoice("format", _format_names, ("openai", "chat", "responses", "claude")),
    metavar="NAME",
    help="Wire format, if it cannot be detected: openai-chat, openai-responses, anthropic, gemini.",
)
session_option = click.option("--session", metavar="ID", help="Session of a store.")
whole_option = click.option("--whole", is_flag=True, help="Use the whole history, not only the current context.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a report.")
store_option = click.option(
    "--store", metavar="STORE", help="A database or a folder of JSONL sessions; default: from your settings."
)
strategy_option = click.option(
    "--strategy",
    metavar="NAME[:N]",
    shell_complete=complete_strategy,
    help="default, sliding:20, turns:10, tokens:4000, last:10, fraction:0.4, prune, ledger, truncate; + chains them.",
)
preset_option = click.option(
    "--preset",
    type=PRESET_NAME,
    metavar="NAME",
    help="Compact like a known system with a window of --budget tokens; holdfast presets lists them.",
)
summarizer_option = click.option(
    "--summarizer",
    metavar="MODEL",
    shell_complete=_complete_summarizer,
    help="Model that writes the summary: anthropic:NAME, openai:NAME, gemini:NAME, http://localhost:8080/v1#NAME.",
)
instructions_option = click.option("--instructions", metavar="TEXT", help="Extra instructions for the summary.")
now_option = click.option("--now", is_flag=True, help="Compact even if the trigger does not fire.")
_CHAT_OPTIONS = (
    click.option(
        "--model", metavar="MODEL", help="Model that answers: anthropic:NAME, http://localhost:8080/v1#NAME, …"
    ),
    click.option("--summarizer", metavar="MODEL", help="Model that writes summaries; default: the model that answers."),
    click.option("--preset", type=PRESET_NAME, metavar="NAME", help="Compaction preset; holdfast presets lists them."),
    click.option("--window", type=CountType(), help="Context window in tokens; default: from the model catalog."),
    click.option("--store", metavar="STORE", help="Store for sessions: a database or a folder."),
    click.option(
        "--folder", default=".", metavar="FOLDER", help="Folder the agent works in; default: the current one."
    ),
    click.option("--session", metavar="ID", help="Continue this session of the store."),
    click.option("--continue", "newest", is_flag=True, help="Continue the session last used in this folder."),
    click.option("--trust", is_flag=True, help="Trust the folder this time: see holdfast trust --help."),
    click.option("--yes", is_flag=True, help="Allow changes without asking."),
    click.option(
        "--permission-mode",
        type=NameChoice("permission mode", ("ask", "accept-edits", "plan")),
        default="ask",
        metavar="NAME",
        help="ask, accept-edits: write files of the folder without asking, or plan: change nothing.",
    ),
    click.option(
        "--sandbox",
        type=NameChoice("sandbox", ("offline", "network")),
        is_flag=False,
        flag_value="offline",
        metavar="[network]",
        help="Run the agent's commands in bubblewrap: they write only in the folder, without a network or with it.",
    ),
    click.option("--no-project-instructions", is_flag=True, help="Do not read AGENTS.md and CLAUDE.md."),
    click.option("--no-auto-compact", is_flag=True, help="Compact only on request."),
)


def chat_options(command: F) -> F:
    """Decorator that adds the chat options to a command."""
    for option in reversed(_CHAT_OPTIONS):
        command = option(command)
    return command
