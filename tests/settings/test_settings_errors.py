"""Invalid settings: one sentence with the file, the line, and the closest valid name."""

from __future__ import annotations

import os
from typing import Any

import pytest
from settings_home import Home

from holdfast.errors import InvalidInput, InvalidLimit
from holdfast.settings import preset_for


@pytest.mark.parametrize(
    ("text", "line", "name", "meant"),
    [
        ("modle = 'openai:a'", 1, "modle", "'model'"),
        ("# mine\n\npreset = 'pi'\nwindw = 3", 4, "windw", "'window'"),
        ("[compaction]\nenabled = true\nreserve = 5", 3, "compaction.reserve", "'compaction.reserve_tokens'"),
        ("[compaction]\nreserveTokens = 5", 2, "compaction.reserveTokens", "'compaction.reserve_tokens'"),
        ("enabled = false", 1, "enabled", "'compaction.enabled'"),
        ("[compactions]\nenabled = false", 2, "compactions.enabled", "'compaction.enabled'"),
        ("compaction = {enabld = true}", 1, "compaction.enabld", "'compaction.enabled'"),
        ("[hooks]\nsession-start = []", 2, "hooks.session-start", "'hooks.session_start'"),
    ],
)
def test_settings_unknown_key_suggests_the_closest(text: str, line: int, name: str, meant: str, home: Home) -> None:
    file = home.write(text)
    with pytest.raises(InvalidInput) as problem:
        home.load()
    assert str(problem.value) == f"{file}, line {line}: there is no setting {name!r}: did you mean {meant}?"


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("[compactoin]", 1, "there is no section [compactoin]: did you mean [compaction]?"),
        ("model = 'm'\n\n[Hook]\n# later\n", 3, "there is no section [Hook]: did you mean [hooks]?"),
        ("[compaction.reserve]", 1, "there is no section [compaction.reserve]: did you mean [compaction]?"),
        ("[colours]", 1, "there is no section [colours]: use one of [compaction], [hooks]."),
        ("model = {}", 1, "model takes a non-empty text, not {}."),
    ],
)
def test_settings_unknown_empty_section_is_refused(text: str, line: int, expected: str, home: Home) -> None:
    file = home.write(text)
    with pytest.raises(InvalidInput) as problem:
        home.load()
    assert str(problem.value) == f"{file}, line {line}: {expected}"


def test_settings_known_section_may_be_empty(home: Home) -> None:
    home.write("[compaction]\n[hooks]")
    assert set(home.load().origins.values()) == {"default"}


def test_settings_error_hides_api_key(home: Home) -> None:
    home.write("""[hooks]\nbefore = "curl -H 'Authorization: Bearer sk-abcdefghijklmnop' https://harbor.example\"""")
    with pytest.raises(InvalidInput, match=r"takes a list of shell commands, not .*\[hidden\]") as problem:
        home.load()
    assert "sk-abcdefghijklmnop" not in str(problem.value)


def test_settings_unrelated_key_lists_all_keys(home: Home) -> None:
    home.write("colour = 'blue'")
    with pytest.raises(InvalidInput, match=r"there is no setting 'colour': use one of model, summarizer, preset,"):
        home.load()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model = 3", "line 1: model takes a non-empty text, not 3"),
        ("model = ' '", "line 1: model takes a non-empty text, not ' '"),
        ("window = '200k'", "line 1: window takes a whole number, not '200k'"),
        ("window = true", "line 1: window takes a whole number, not True"),
        ("window = 1.5", "line 1: window takes a whole number, not 1.5"),
        ("window = 0", "line 1: window is 0: it must be at least 1"),
        ("\n[compaction]\nreserve_tokens = -4", "line 3: compaction.reserve_tokens is -4: it must be at least 1"),
        ("[compaction]\nkeep_recent_tokens = 0", "compaction.keep_recent_tokens is 0: it must be at least 1"),
        ("[compaction]\nenabled = 'no'", "compaction.enabled takes true or false, not 'no'"),
        ("[hooks]\nbefore = 'make'", "hooks.before takes a list of shell commands, not 'make'"),
        ("[hooks]\nbefore = ['make', 3]", "hooks.before takes a list of shell commands"),
        ("[hooks]\nbefore = ['']", "hooks.before takes a list of shell commands"),
        ("preset = 'codx'", "line 1: There is no preset 'codx': did you mean 'codex'?"),
        ("compaction = true", "there is no setting 'compaction': did you mean 'compaction.enabled'?"),
        ("model = \nwindow = 3", "is not valid TOML: Invalid value (at line 1, column 9)"),
    ],
)
def test_settings_wrong_type_is_refused(text: str, expected: str, home: Home) -> None:
    file = home.write(text)
    with pytest.raises(InvalidInput) as problem:
        home.load()
    assert expected in str(problem.value) and str(file) in str(problem.value)
    assert "\n" not in str(problem.value)


def test_settings_project_file_is_validated(home: Home) -> None:
    file = home.write_project("[hooks]\nbefor = ['x']")
    with pytest.raises(InvalidInput, match=f"{file}, line 2: there is no setting 'hooks.befor'"):
        home.load()


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("HOLDFAST_MODLE", "HOLDFAST_MODEL"),
        ("HOLDFAST_MODELS", "HOLDFAST_MODEL"),
        ("HOLDFAST_AUTOCOMPACT", "HOLDFAST_AUTO_COMPACT"),
        ("HOLDFAST_SUMMARISER", "HOLDFAST_SUMMARIZER"),
        ("HOLDFAST_KEEP_RECENT", "HOLDFAST_KEEP_RECENT_TOKENS"),
        ("HOLDFAST_RESERVED_TOKENS", "HOLDFAST_RESERVE_TOKENS"),
    ],
)
def test_settings_misspelled_variable_is_refused(variable: str, meant: str, home: Home) -> None:
    with pytest.raises(InvalidInput, match=f"The variable {variable} sets nothing: did you mean {meant}?"):
        home.load(**{variable: "x"})


@pytest.mark.parametrize("variable", ["SESSIONS", "WHOLE", "KILL_ROUNDS", "HOME", "DEBUG", "LOG_LEVEL", "COLOUR", ""])
def test_settings_unrelated_variable_is_ignored(variable: str, home: Home) -> None:
    assert set(home.load(**{f"HOLDFAST_{variable}": "x"}).origins.values()) == {"default"}


def test_settings_variable_takes_a_count_as_the_option_does(home: Home) -> None:
    assert home.load(HOLDFAST_WINDOW="50k").window == 50_000


@pytest.mark.parametrize(
    ("variable", "text", "expected"),
    [
        (
            "HOLDFAST_WINDOW",
            "many",
            "HOLDFAST_WINDOW: window takes a whole number of at least 1, like 100000",
        ),
        ("HOLDFAST_WINDOW", "0", "100k or 1.5M, not '0'"),
        ("HOLDFAST_AUTO_COMPACT", "maybe", "compaction.enabled takes true or false, not 'maybe'"),
        ("HOLDFAST_PRESET", "pie", "There is no preset 'pie': did you mean 'pi'?"),
    ],
)
def test_settings_invalid_variable_value_is_refused(variable: str, text: str, expected: str, home: Home) -> None:
    with pytest.raises(InvalidInput) as problem:
        home.load(**{variable: text})
    assert expected in str(problem.value)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"modle": "x"}, "The flags: there is no setting 'modle': did you mean 'model'?"),
        ({"window": "x"}, "The flags: window takes a whole number, not 'x'"),
    ],
)
def test_settings_invalid_flag_is_refused(flags: dict[str, Any], expected: str, home: Home) -> None:
    with pytest.raises(InvalidInput) as problem:
        home.load(flags)
    assert expected in str(problem.value)


def test_settings_unreadable_file_is_refused(home: Home) -> None:
    home.write("")
    home.file.write_bytes(b"model = '\xff'")
    with pytest.raises(InvalidInput, match="cannot be read"):
        home.load()
    home.file.unlink()
    home.file.mkdir()
    with pytest.raises(InvalidInput, match="cannot be read"):
        home.load()


@pytest.mark.parametrize("name", ["reserve_tokens", "keep_recent_tokens"])
def test_settings_token_count_filling_the_window_is_refused(name: str, home: Home) -> None:
    """The error names both contradicting numbers with their origin."""
    file = home.write(f"[compaction]\n{name} = 8000")
    with pytest.raises(InvalidLimit) as problem:
        home.load(HOLDFAST_WINDOW="8_000")
    assert f"compaction.{name} is 8,000 ({file})" in str(problem.value)
    assert "a window of 8,000 (HOLDFAST_WINDOW): make it smaller" in str(problem.value)
    assert home.load(HOLDFAST_WINDOW="8001").window == 8_001


@pytest.mark.parametrize("preset", ["holdfast", "pi"])
@pytest.mark.parametrize("window", [1, 100, 8_192, 16_384, 20_000])
def test_settings_defaults_adapt_to_a_small_window(window: int, preset: str, home: Home) -> None:
    """Behaviour 14: a reserve as large as the window must neither compact always nor never."""
    settings = home.load(HOLDFAST_WINDOW=str(window), HOLDFAST_PRESET=preset)
    threshold = preset_for(settings).bounds(window, 0).threshold
    assert threshold is not None
    assert window // 2 <= threshold <= window and threshold >= 1


def test_settings_missing_folder_reads_no_project_file(home: Home) -> None:
    assert home.load(folder=home.folder / "gone" / "away").preset == "holdfast"
    assert not os.path.exists(home.folder / "gone")
