"""The harbour task in each framework's own agent loop, with Holdfast and with the framework's own means.

A module defines `with_holdfast(server, **options) -> str`, which runs the task and returns the agent's answer, and
`OWN`, the same by the framework's own means, by name. `options` are those of the integration.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, NamedTuple

from tests.integrations.harbour_task import Harbour

_HARNESS = "pydantic_ai_harness"
"""It comes with an earlier Pydantic AI than the integration needs."""


def is_installed(module: str) -> bool:
    """Whether a module, or a module of a package, can be imported."""
    if module.startswith("pydantic_ai") and find_spec(_HARNESS) is not None:
        return False
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
    except ValueError:  # imported, but lazily: it has no spec
        return True


class FrameworkAgent(NamedTuple):
    """A framework: the package to import, its distribution, and the module that runs the task."""

    package: str
    distribution: str
    module: str
    summarizes: bool = False
    """Whether the run asks the model for summaries: CrewAI drops what a model writes next to its calls."""

    @property
    def installed(self) -> bool:
        return is_installed(self.package)

    @property
    def version(self) -> str:
        return version(self.distribution)

    def with_holdfast(self, server: Harbour, **options: Any) -> str:
        return str(self._module.with_holdfast(server, **options))

    @property
    def own(self) -> dict[str, Callable[[Harbour], str]]:
        own: dict[str, Callable[[Harbour], str]] = self._module.OWN
        return own

    @property
    def _module(self) -> Any:
        return import_module(f"tests.integrations.agents.{self.module}")


AGENTS = {
    "LangChain": FrameworkAgent("langchain", "langchain", "langchain"),
    "LangGraph": FrameworkAgent("langgraph", "langgraph", "langgraph"),
    "OpenAI Agents": FrameworkAgent("agents", "openai-agents", "openai_agents"),
    "Pydantic AI": FrameworkAgent("pydantic_ai", "pydantic-ai-slim", "pydantic_ai"),
    "Haystack": FrameworkAgent("haystack", "haystack-ai", "haystack"),
    "Agent Framework": FrameworkAgent("agent_framework", "agent-framework-core", "agent_framework"),
    "LiteLLM": FrameworkAgent("litellm", "litellm", "litellm"),
    "Google ADK": FrameworkAgent("google.adk", "google-adk", "google_adk"),
    "LlamaIndex": FrameworkAgent("llama_index", "llama-index-core", "llama_index"),
    "ag2": FrameworkAgent("ag2", "ag2", "ag2"),
    "Agno": FrameworkAgent("agno", "agno", "agno"),
    "CrewAI": FrameworkAgent("crewai", "crewai", "crewai", summarizes=True),
    "Strands": FrameworkAgent("strands", "strands-agents", "strands"),
}
