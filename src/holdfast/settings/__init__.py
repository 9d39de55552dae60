"""Settings from files, the environment and flags, with the origin of each value."""

from .keys import KEYS, SettingKey
from .loading import load_settings, project_file
from .paths import data_folder, default_store, state_folder, trusted_folders, user_file
from .saving import save_setting
from .settings import CompactionSettings, HookSettings, Settings, chosen_preset, open_configured_store, preset_for

__all__ = [
    "KEYS",
    "CompactionSettings",
    "HookSettings",
    "SettingKey",
    "Settings",
    "chosen_preset",
    "data_folder",
    "default_store",
    "load_settings",
    "open_configured_store",
    "preset_for",
    "project_file",
    "save_setting",
    "state_folder",
    "trusted_folders",
    "user_file",
]
