"""docs/settings.md lists every setting with its variable and default."""

from __future__ import annotations

from pathlib import Path

import pytest
from settings_home import Home

from holdfast.settings import KEYS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "settings.md"
if not PAGE.exists():
    pytest.skip("the documentation is not here", allow_module_level=True)
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", KEYS)
def test_settings_docs_list_every_setting(name: str) -> None:
    line = next(line for line in TEXT.splitlines() if line.startswith("| `") and f"`{name}`" in line)
    assert f"| `{KEYS[name].variable}` |" in line if KEYS[name].variable else "| | none |" in line


def test_settings_docs_hooks_run_only_around_a_compaction() -> None:
    """`session_start` could be mistaken for the opening of a session."""
    line = next(line for line in TEXT.splitlines() if line.startswith("| `hooks."))
    assert "None of them runs when a session is opened" in line
    for name in ("hooks.before", "hooks.after", "hooks.session_start"):
        assert KEYS[name].description.endswith("a compaction")


def test_settings_docs_example_is_valid(home: Home) -> None:
    home.write(TEXT.partition("```toml\n")[2].partition("```")[0])
    settings = home.load()
    assert settings.model == "anthropic:claude-sonnet-4-5" and settings.hooks.after == ("make -s notes",)


def test_settings_docs_defaults_match(home: Home) -> None:
    compaction = home.load().compaction
    assert f"| {compaction.reserve_tokens:,} |" in TEXT and f"| {compaction.keep_recent_tokens:,} |" in TEXT
