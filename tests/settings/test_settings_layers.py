"""Defaults, the person's file, the project's, the environment, flags: the last that says something wins (P2)."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from settings_home import Home

from holdfast.settings import KEYS, Compaction, Hooks, Settings, default_store

LAYERS = ("user", "project", "environment", "flags")
PRESETS = dict(zip(LAYERS, ("spring", "pi", "codex", "goat"), strict=True))


def a_value(key: str, layer: str) -> Any:
    """Another one in each layer."""
    number = LAYERS.index(layer)
    match KEYS[key].kind:
        case "count":
            return 1_000 * (number + 1) if key == "window" else 100 + number
        case "flag":
            return number % 2 == 0
        case "commands":
            return [f"echo {layer}"]
    return PRESETS[layer] if key == "preset" else f"openai:{layer}"


def as_toml(key: str, value: Any) -> str:
    return f"{key} = {json.dumps(value)}\n"


def as_variable(value: Any) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def may_say(key: str, layer: str) -> bool:
    """A project may not set what only the person may; hooks have no variable."""
    if layer == "project":
        return not KEYS[key].owned
    return layer != "environment" or KEYS[key].variable is not None


@given(said=st.dictionaries(st.sampled_from(list(KEYS)), st.sets(st.sampled_from(LAYERS))))
def test_the_last_that_says_something_wins(said: dict[str, set[str]]) -> None:
    with TemporaryDirectory() as folder:
        home = Home(Path(folder))
        files = dict.fromkeys(LAYERS, "")
        variables, flags = {}, {}
        for key, layers in said.items():
            for layer in layers:
                if layer == "flags":
                    flags[key] = a_value(key, layer)
                elif layer == "environment" and (variable := KEYS[key].variable):
                    variables[variable] = as_variable(a_value(key, layer))
                else:
                    files[layer] += as_toml(key, a_value(key, layer))
        own, project = home.write(files["user"]), home.write_project(files["project"])
        settings = home.load(flags, **variables)
        untouched = Settings(store=default_store(home.environ))
        for key in KEYS:
            winners = [layer for layer in LAYERS if layer in said.get(key, ()) and may_say(key, layer)]
            if not winners:
                assert (settings.value(key), settings.origins[key]) == (untouched.value(key), "default")
                continue
            value = a_value(key, winners[-1])
            assert settings.value(key) == (tuple(value) if isinstance(value, list) else value)
            places = {"user": str(own), "project": str(project), "environment": KEYS[key].variable, "flags": "flag"}
            assert settings.origins[key] == places[winners[-1]]


def test_without_anything_the_defaults_hold(home: Home) -> None:
    """P2: enabled, 16,384 in reserve, 20,000 kept."""
    settings = home.load()
    assert (settings.model, settings.summarizer, settings.preset, settings.window) == (None, None, "holdfast", None)
    assert settings.compaction == Compaction(enabled=True, reserve_tokens=16_384, keep_recent_tokens=20_000)
    assert settings.hooks == Hooks((), (), ())
    assert settings.store == f"sqlite:///{home.folder}/.local/share/holdfast/sessions.db"
    assert set(settings.origins) == set(KEYS) and set(settings.origins.values()) == {"default"}
    assert settings.notes == ()


def test_a_table_and_dotted_keys_are_the_same(home: Home) -> None:
    home.write("[compaction]\nenabled = false\nreserve_tokens = 9\n[hooks]\nbefore = ['a', 'b']\n")
    settings = home.load()
    assert (settings.compaction.enabled, settings.compaction.reserve_tokens) == (False, 9)
    assert settings.hooks.before == ("a", "b")
    home.write("compaction.enabled = false\ncompaction.reserve_tokens = 9\nhooks = {before = ['a', 'b']}\n")
    assert home.load() == settings


@pytest.mark.parametrize("word", ["0", "false", "off", "no", "OFF", " No "])
def test_automatic_compaction_is_turned_off_by_a_variable(word: str, home: Home) -> None:
    """P2."""
    assert not home.load(HOLDFAST_AUTO_COMPACT=word).compaction.enabled


@pytest.mark.parametrize("word", ["1", "true", "on", "yes", "True"])
def test_and_on_again(word: str, home: Home) -> None:
    home.write("[compaction]\nenabled = false")
    assert home.load(HOLDFAST_AUTO_COMPACT=word).compaction.enabled


def test_an_empty_variable_says_nothing(home: Home) -> None:
    home.write("model = 'openai:a'")
    assert home.load(HOLDFAST_MODEL="", HOLDFAST_WINDOW=" ").origins["model"] == str(home.file)


def test_a_flag_that_was_not_given_says_nothing(home: Home) -> None:
    home.write("model = 'openai:a'")
    assert home.load({"model": None}).model == "openai:a"


def test_the_places_of_the_desktop_are_honoured(home: Home, tmp_path: Path) -> None:
    home.environ |= {"XDG_CONFIG_HOME": str(tmp_path / "conf"), "XDG_DATA_HOME": str(tmp_path / "data")}
    assert home.write("preset = 'pi'") == tmp_path / "conf" / "holdfast" / "settings.toml"
    assert home.load().preset == "pi"
    assert home.load().store == f"sqlite:///{tmp_path}/data/holdfast/sessions.db"
    home.environ["XDG_CONFIG_HOME"] = "not/absolute"
    assert home.file == tmp_path / ".config" / "holdfast" / "settings.toml"


def test_a_projects_file_is_looked_for_up_to_the_root_of_its_repository(home: Home) -> None:
    deep = home.project / "src" / "quay"
    deep.mkdir(parents=True)
    home.write_project("preset = 'goat'", home.folder / "work")
    assert home.load(folder=deep).preset == "holdfast"
    file = home.write_project("preset = 'pi'")
    assert home.load(folder=deep).origins["preset"] == str(file)
    nearer = home.write_project("preset = 'codex'", home.project / "src")
    assert home.load(folder=deep).origins["preset"] == str(nearer)


def test_without_a_repository_up_to_home_and_outside_of_home_no_further(home: Home, tmp_path: Path) -> None:
    notes = home.folder / "notes" / "today"
    notes.mkdir(parents=True)
    home.write_project("preset = 'pi'", home.folder)
    assert home.load(folder=notes).preset == "pi"
    home.environ["HOME"] = str(tmp_path / "elsewhere")
    assert home.load(folder=notes).preset == "holdfast"
    home.write_project("preset = 'codex'", notes)
    assert home.load(folder=notes).preset == "codex"


def test_one_file_is_not_read_as_both(home: Home) -> None:
    """A person may keep their file in a repository, and link to it."""
    kept = home.write_project("[hooks]\nbefore = ['make notes']")
    home.file.parent.mkdir(parents=True)
    home.file.symlink_to(kept)
    settings = home.load()
    assert settings.hooks.before == ("make notes",) and settings.notes == ()
