"""docs/requirements.md names modules and tests that exist, and has a row for every number that a test uses."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "holdfast"
PAGE = ROOT / "docs" / "requirements.md"
COLUMNS = ["requirement", "built in", "shown by", "differs on purpose, and why"]
NUMBERED = re.compile(r"[SPLWGH]\d{1,2}|\d{1,2}")
IN_TEXT = re.compile(r"\b([SPLWGH])(\d{1,2})(?:-\1(\d{1,2}))?\b")
IN_NAME = re.compile(r"(?:^|_)([splwgh]\d{1,2})(?=_|$)")
IN_CASE = re.compile(r"[SPLWGH]\d{1,2}(?=: )")
BEHAVIOURS = re.compile(r"behaviours? (\d+(?:, \d+)*)")


class Row(NamedTuple):
    """A line of a table of requirements."""

    id: str
    requirement: str
    modules: list[str]
    tests: list[str]
    differs: str


class NamedNumbers(NamedTuple):
    """The numbers that the tests of a file name, by test and in all."""

    by_test: dict[str, set[str]]
    all: set[str]


@cache
def rows() -> list[Row]:
    found, in_table = [], False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]
        if not line.startswith("|"):
            in_table = False
        elif cells[1:] == COLUMNS:
            in_table = True
        elif in_table and set(line) - set("|- "):
            id, requirement, modules, tests, differs = cells
            found.append(Row(id, requirement, _code(modules), _code(tests), differs))
    return found


def _code(cell: str) -> list[str]:
    assert re.fullmatch(r"`[^`]+`(, `[^`]+`)*", cell), cell
    return re.findall(r"`([^`]+)`", cell)


def numbers_in(text: str) -> set[str]:
    """Returns the numbers in a docstring; `S4-S7` is a range, `behaviours 14, 21` are behaviours."""
    found = {number for match in BEHAVIOURS.finditer(text) for number in match[1].split(", ")}
    for letter, first, last in IN_TEXT.findall(text):
        found.update(f"{letter}{number}" for number in range(int(first), int(last or first) + 1))
    return found


@cache
def named_in(path: Path) -> NamedNumbers:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    by_test = dict(_tests(tree, "", numbers_in(ast.get_docstring(tree) or "")))
    cases = {case[0] for node in ast.walk(tree) if (case := _case(node))} if IN_CASE.search(text) else set()
    return NamedNumbers(by_test, cases.union(*by_test.values()))


def _tests(scope: ast.Module | ast.ClassDef, prefix: str, known: set[str]) -> Iterator[tuple[str, set[str]]]:
    """Yields each test as pytest names it, with the numbers in its name and in the docstrings around it."""
    for node in scope.body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        here = known | numbers_in(ast.get_docstring(node) or "")
        here |= {number.upper() for number in IN_NAME.findall(node.name)}
        if isinstance(node, ast.ClassDef):
            yield from _tests(node, f"{prefix}{node.name}::", here)
        elif node.name.startswith("test_"):
            yield prefix + node.name, here


def _case(node: ast.AST) -> re.Match[str] | None:
    """Returns the number that a text begins with, as in the id of a parameter: "P2: another reserve"."""
    return IN_CASE.match(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def test_page_has_rows_with_unique_numbers_and_a_requirement() -> None:
    numbers = Counter(row.id for row in rows() if NUMBERED.fullmatch(row.id))
    assert len(numbers) > 90 and set(numbers.values()) == {1}
    assert [row.id for row in rows() if not row.requirement.endswith(".")] == []
    assert [row.id for row in rows() if row.differs and not row.differs.endswith(".")] == []


def test_every_module_on_the_page_exists() -> None:
    assert {name for row in rows() for name in row.modules if not (PACKAGE / name).is_file()} == set()


def test_every_test_on_the_page_exists() -> None:
    missing = []
    for row in rows():
        for file, _, name in (test.partition("::") for test in row.tests):
            if not (ROOT / file).is_file() or name not in named_in(ROOT / file).by_test:
                missing.append(f"{row.id}: {file}::{name}")
    assert missing == []


def test_test_shown_for_a_number_names_it() -> None:
    silent = []
    for row in rows():
        for file, _, name in (test.partition("::") for test in row.tests):
            if NUMBERED.fullmatch(row.id) and row.id not in named_in(ROOT / file).by_test.get(name, set()):
                silent.append(f"{row.id}: {file}::{name}")
    assert silent == []


def test_every_number_used_in_a_test_is_on_the_page() -> None:
    used = set[str]().union(*(named_in(path).all for path in (ROOT / "tests").rglob("test_*.py")))
    assert used == {row.id for row in rows() if NUMBERED.fullmatch(row.id)}
