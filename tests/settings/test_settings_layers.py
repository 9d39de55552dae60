"""Layers: defaults, the user's file, the project's file, the environment, flags; the last one wins (P2)."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from settings_home import Home

from holdfast.settings import KEYS, CompactionSettings, HookSettings, Settings, default_store

LAYERS = ("user", "project", "environment", "flags")
PRESETS = dict(zip(LAYERS, ("spring", "pi", "codex", "goat"), strict=True))


def a_value(key: str, layer: str) -> Any:
    """A different value for each layer."""
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


def may_set(key: str, layer: str) -> bool:
    """A project may only set keys of its list; hooks have no variable."""
    if layer == "project":
        return KEYS[key].in_project
    return layer != "environment" or KEYS[key].variable is not None


@given(layers_by_key=st.dictionaries(st.sampled_from(list(KEYS)), st.sets(st.sampled_from(LAYERS))))
def test_settings_last_layer_wins(layers_by_key: dict[str, set[str]]) -> None:
    with TemporaryDirectory() as folder:
        home = Home(Path(folder))
        files = dict.fromkeys(LAYERS, "")
        variables, flags = {}, {}
        for key, layers in layers_by_key.items():
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
            winners = [layer for layer in LAYERS if layer in layers_by_key.get(key, ()) and may_set(key, layer)]
            if not winners:
                assert (settings.value(key), settings.origins[key]) == (untouched.value(key), "default")
                continue
            value = a_value(key, winners[-1])
            assert settings.value(key) == (tuple(value) if isinstance(value, list) else value)
            places = {"user": str(own), "project": str(project), "environment": KEYS[key].variable, "flags": "flag"}
            assert settings.origins[key] == places[winners[-1]]


def test_settings_defaults(home: Home) -> None:
    """P2: enabled, 16,384 in reserve, 20,000 kept."""
    settings = home.load()
    assert (settings.model, settings.summarizer, settings.preset, settings.window) == (None, None, "holdfast", None)
    assert settings.compaction == CompactionSettings(enabled=True, reserve_tokens=16_384, keep_recent_tokens=20_000)
    assert settings.hooks == HookSettings((), (), ())
    assert settings.store == f"sqlite:///{home.folder}/.local/share/holdfast/sessions.db"
    assert set(settings.origins) == set(KEYS) and set(settings.origins.values()) == {"default"}
    assert settings.notes == ()


def test_settings_table_and_dotted_keys_are_equal(home: Home) -> None:
    home.write("[compaction]\nenabled = false\nreserve_tokens = 9\n[hooks]\nbefore = ['a', 'b']\n")
    settings = home.load()
    assert (settings.compaction.enabled, settings.compaction.reserve_tokens) == (False, 9)
    assert settings.hooks.before == ("a", "b")
    home.write("compaction.enabled = false\ncompaction.reserve_tokens = 9\nhooks = {before = ['a', 'b']}\n")
    assert home.load() == settings


@pytest.mark.parametrize("word", ["0", "false", "off", "no", "OFF", " No "])
def test_settings_variable_disables_automatic_compaction(word: str, home: Home) -> None:
    """P2."""
    assert not home.load(HOLDFAST_AUTO_COMPACT=word).compaction.enabled


@pytest.mark.parametrize("word", ["1", "true", "on", "yes", "True"])
def test_settings_variable_enables_automatic_compaction(word: str, home: Home) -> None:
    home.write("[compaction]\nenabled = false")
    assert home.load(HOLDFAST_AUTO_COMPACT=word).compaction.enabled


def test_settings_empty_variable_is_ignored(home: Home) -> None:
    home.write("model = 'openai:a'")
    assert home.load(HOLDFAST_MODEL="", HOLDFAST_WINDOW=" ").origins["model"] == str(home.file)


def test_settings_none_flag_is_ignored(home: Home) -> None:
    home.write("model = 'openai:a'")
    assert home.load({"model": None}).model == "openai:a"


def test_settings_xdg_directories_are_used(home: Home, tmp_path: Path) -> None:
    home.environ |= {"XDG_CONFIG_HOME": str(tmp_path / "conf"), "XDG_DATA_HOME": str(tmp_path / "data")}
    assert home.write("preset = 'pi'") == tmp_path / "conf" / "holdfast" / "settings.toml"
    assert home.load().preset == "pi"
    assert home.load().store == f"sqlite:///{tmp_path}/data/holdfast/sessions.db"
    home.environ["XDG_CONFIG_HOME"] = "not/absolute"
    assert home.file == tmp_path / ".config" / "holdfast" / "settings.toml"


def test_settings_project_file_is_searched_up_to_repository_root(home: Home) -> None:
    deep = home.project / "src" / "quay"
    deep.mkdir(parents=True)
    home.trusted.decide(home.folder / "work", True)
    home.write_project("preset = 'goat'", home.folder / "work")
    assert home.load(folder=deep).preset == "holdfast"
    file = home.write_project("preset = 'pi'")
    assert home.load(folder=deep).origins["preset"] == str(file)
    nearer = home.write_project("preset = 'codex'", home.project / "src")
    assert home.load(folder=deep).origins["preset"] == str(nearer)


def test_h14_settings_project_file_search_ends_at_the_trusted_folder(home: Home) -> None:
    notes = home.folder / "notes" / "today"
    notes.mkdir(parents=True)
    home.write_project("preset = 'pi'", home.folder)
    home.write_project("preset = 'goat'", notes.parent)
    assert home.load(folder=notes).preset == "holdfast"
    home.trusted.decide(notes, True)
    assert home.load(folder=notes).preset == "holdfast"
    home.trusted.decide(notes.parent, True)
    home.trusted.forget(notes)
    assert home.load(folder=notes).preset == "goat"
    home.write_project("preset = 'codex'", notes)
    assert home.load(folder=notes).preset == "codex"


def test_settings_linked_file_is_not_read_twice(home: Home) -> None:
    """The user's file may be a link to one in a repository."""
    kept = home.write_project("[hooks]\nbefore = ['make notes']")
    home.file.symlink_to(kept)
    settings = home.load()
    assert settings.hooks.before == ("make notes",) and settings.notes == ()
