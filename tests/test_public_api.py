"""The public names: the root's lazy table, the submodules, their documentation, and types for code of one's own."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import griffe
import pytest

import holdfast
from holdfast import HoldfastError, compact
from holdfast.errors import Outcome
from holdfast.messages import Message
from holdfast.types import Estimator, Event, Plan, Request, Skip, Strategy, Trigger

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "holdfast"
PAGES = ROOT / "docs" / "api"
SUBMODULES = (
    "agent compaction errors hooks jobs messages models recall sessions stores strategies summaries tokens transcripts "
    "triggers types"
).split()
FRAMEWORKS = "agent_framework haystack langchain langgraph openai_agents pydantic_ai".split()
SEPARATE_FRAMEWORKS = "ag2 agno crewai google_adk litellm llama_index strands".split()
"""Frameworks that are installed in an environment of their own."""
PAGE = {name: name for name in SUBMODULES} | {
    "agent.tools": "agent",
    **{f"integrations.{name}": "integrations" for name in FRAMEWORKS},
    "settings": "settings",
    "tokens.budget": "tokens",
    "tokens.catalog": "tokens",
}
"""The page in docs/api of each documented module."""
PROTOCOLS = {
    "stores": ("Log", "Search", "Lease"),
    "tokens": ("Estimator",),
    "tokens.budget": ("Threshold",),
    "models": ("Model", "ChatModel"),
    "strategies": ("SummaryWriter",),
    "types": ("Strategy",),
}
"""Their methods are documented once, and not again in every class that has them."""


def exported(name: str) -> list[str]:
    return list(importlib.import_module(f"holdfast.{name}").__all__)


@cache
def package() -> Any:
    """The package as the API reference reads it."""
    return griffe.load("holdfast", search_paths=[str(SOURCE.parent)], resolve_aliases=True)


def documented(module: str, name: str) -> Any:
    found = package()[f"{module}.{name}"]
    if found.is_alias:
        found = found.final_target
    return found[name] if found.is_module else found  # holdfast.messages.repair is a module and a function


# -- the root ----------------------------------------------------------------------------------------


def test_root_names_are_sorted_and_at_most_35() -> None:
    assert sorted(holdfast.__all__) == holdfast.__all__
    assert len(set(holdfast.__all__)) == len(holdfast.__all__) <= 35


def test_root_names_equal_lazy_table_and_type_checking_imports() -> None:
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    imported = {
        (node.module, alias.name)
        for node in guarded.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname is None
    }
    assert {(module, name) for name, module in holdfast._MODULES.items()} == imported
    assert sorted(holdfast._MODULES) == holdfast.__all__


@pytest.mark.parametrize("name", holdfast.__all__)
def test_root_name_is_exported_by_its_submodule_and_listed_in_docs(name: str) -> None:
    module = holdfast._MODULES[name]
    assert getattr(holdfast, name) is getattr(importlib.import_module(f"holdfast.{module}"), name)
    assert name in exported(module)
    assert f"[`{name}`]({module}.md#holdfast.{module}.{name}" in (PAGES / "index.md").read_text(encoding="utf-8")


def test_root_unknown_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'compress'"):
        holdfast.compress  # noqa: B018


# -- the submodules ------------------------------------------------------------------------------------


def test_root_docstring_names_every_submodule() -> None:
    assert [name for name in SUBMODULES if f".{name}`" not in str(holdfast.__doc__)] == []


@pytest.mark.parametrize("name", PAGE)
def test_submodule_has_unique_names_and_a_page(name: str) -> None:
    names = exported(name)
    assert len(set(names)) == len(names)
    module = importlib.import_module(f"holdfast.{name}")
    assert [each for each in names if not hasattr(module, each)] == []
    page = (PAGES / f"{PAGE[name]}.md").read_text(encoding="utf-8")
    assert f"::: holdfast.{name}\n" in page
    if listed := re.search(rf"::: holdfast\.{name}\n    options:\n      members: \[(.*)\]", page):
        rendered = {*listed[1].split(", "), *re.findall(rf"::: holdfast\.{name}\.(\w+)", page)}
        assert rendered == set(names)
    assert f"api/{PAGE[name]}.md" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAGE)
def test_submodule_names_have_docstrings(name: str) -> None:
    assert [each for each in exported(name) if not documented(name, each).has_docstring] == []


@pytest.mark.parametrize("name", PAGE)
def test_public_methods_have_docstrings(name: str) -> None:
    missing = []
    for each in exported(name):
        found = documented(name, each)
        if found.is_class:
            missing += [f"{each}.{method}" for method in undocumented_methods(found)]
    assert missing == []


def undocumented_methods(found: Any) -> Iterator[str]:
    for name, member in found.all_members.items():
        if name.startswith("_") or not member.canonical_path.startswith("holdfast."):
            continue
        if member.is_alias:
            member = member.final_target
        is_method = member.is_function or "property" in member.labels
        if is_method and not member.has_docstring and not inherits_docstring(found, name):
            yield name


def inherits_docstring(found: Any, name: str) -> bool:
    """True if a base class or a protocol that the class satisfies documents the method."""
    if any(name in base.members and base.members[name].has_docstring for base in found.mro()):
        return True
    for module, names in PROTOCOLS.items():
        for protocol in (documented(module, each) for each in names):
            methods = {each for each in protocol.members if not each.startswith("_")}
            if name in methods and methods <= found.all_members.keys() and protocol.members[name].has_docstring:
                return True
    return False


def test_public_class_names_are_unique() -> None:
    places = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for name in re.findall(r"^ *class ([a-zA-Z]\w*)", path.read_text(encoding="utf-8"), re.MULTILINE):
            places[name].append(str(path.relative_to(SOURCE)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


# -- errors and the documentation ----------------------------------------------------------------------


def all_errors(base: type[Exception]) -> set[type[Exception]]:
    return {base}.union(*(all_errors(child) for child in base.__subclasses__()))


def test_errors_that_docs_mention_are_in_errors() -> None:
    for name in SUBMODULES:
        importlib.import_module(f"holdfast.{name}")
    exported_errors = set(exported("errors"))
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    for error in all_errors(HoldfastError):
        if error.__module__.startswith("holdfast.") and re.search(rf"\b{error.__name__}\b", text):
            assert error.__name__ in exported_errors, error
            assert getattr(holdfast.errors, error.__name__) is error


def test_errors_of_public_submodules_are_in_errors() -> None:
    for name in SUBMODULES:
        module = importlib.import_module(f"holdfast.{name}")
        raised = [each for each in vars(module).values() if isinstance(each, type) and issubclass(each, HoldfastError)]
        assert [error for error in raised if error.__module__ != "holdfast.errors"] == []


SEPARATE_MODULES = {f"holdfast.integrations.{name}" for name in SEPARATE_FRAMEWORKS}


def exported_statically(module: str) -> list[str]:
    """Returns the `__all__` of a module that cannot be imported here."""
    source = (SOURCE.parent / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
    (found,) = re.findall(r"^__all__ = (\[.*?\])$", source, re.MULTILINE)
    names: list[str] = ast.literal_eval(found)
    return names


def test_names_that_docs_import_exist() -> None:
    missing = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for code in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            tree = compile(code, page.name, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom) and (node.module or "") in SEPARATE_MODULES:
                    names = exported_statically(str(node.module))
                    missing += [(page.name, alias.name) for alias in node.names if alias.name not in names]
                elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "holdfast":
                    found = importlib.import_module(str(node.module))
                    assert node.module in ("holdfast", *(f"holdfast.{name}" for name in PAGE)), page.name
                    missing += [(page.name, alias.name) for alias in node.names if not hasattr(found, alias.name)]
    assert missing == []


DOORS: list[Callable[..., Any]] = [
    *(holdfast.compact, holdfast.Keeper, holdfast.SessionService, holdfast.check),
    *(getattr(holdfast.SessionService, name) for name in ("create", "append", "compact", "context")),
]


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__qualname__)
def test_door_explains_each_of_its_arguments(door: Callable[..., Any]) -> None:
    explained = re.findall(
        r"^ {4,}(\w+): \S", inspect.cleandoc(door.__doc__ or "").partition("Args:\n")[2], re.MULTILINE
    )
    assert explained == [name for name in inspect.signature(door).parameters if name != "self"]


def test_acompact_takes_what_compact_takes() -> None:
    assert inspect.signature(holdfast.acompact) == inspect.signature(holdfast.compact)
    assert "with the same arguments" in (holdfast.acompact.__doc__ or "")


# -- code of one's own -----------------------------------------------------------------------------------


class WordEstimator:
    """An estimator from public names: one token per word."""

    name = "words"

    def measure(self, message: Message) -> int:
        return self.measure_text(message.text)

    def measure_text(self, text: str) -> int:
        return len(text.split())

    def tokens(self, units: int) -> int:
        return units


class KeepNewestFour:
    """A strategy from public names, with limits of its own."""

    min_saving = 0.0

    @property
    def target(self) -> int | None:
        return None

    def __call__(self, request: Request) -> Plan | Skip:
        if len(request.messages) <= 4:
            return Skip(Outcome.NOTHING_TO_COMPACT, "there are at most four messages")
        return request.plan.archive(len(request.messages) - 4).made_by("newest four")


def more_than_ten_messages(request: Request) -> bool:
    return len(request.messages) > 10


def conversation(turns: int) -> list[dict[str, str]]:
    return [
        {"role": role, "content": f"{role} message {number} of a long conversation"}
        for number in range(turns)
        for role in ("user", "assistant")
    ]


def test_own_strategy_trigger_and_estimator_run_through_compact() -> None:
    strategy: Strategy = KeepNewestFour()
    trigger: Trigger = more_than_ten_messages
    estimator: Estimator = WordEstimator()
    assert isinstance(strategy, Strategy) and isinstance(estimator, Estimator)
    result = compact(conversation(8), budget=1_000, strategy=strategy, trigger=trigger, estimator=estimator)
    assert result.outcome == Outcome.COMPACTED
    assert result.messages == conversation(8)[-4:]
    assert (result.tokens_before, result.tokens_after) == (16 * 7, 4 * 7)
    assert result.strategy == "newest four"
    again = compact(conversation(3), budget=1_000, strategy=strategy, trigger=trigger, estimator=estimator)
    assert again.outcome == Outcome.NOT_NEEDED and again.messages == conversation(3)


def test_own_strategy_as_plain_function_runs_through_compact() -> None:
    def drop_half(request: Request) -> Plan | Skip:
        return request.plan.archive(len(request.messages) // 2)

    result = compact(conversation(8), budget=1_000, strategy=drop_half, trigger=more_than_ten_messages)
    assert result.outcome == Outcome.COMPACTED and result.messages == conversation(8)[8:]


def test_event_is_public() -> None:
    assert Event.__name__ in exported("types")
