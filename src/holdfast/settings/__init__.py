"""Settings: from files, the environment and flags, with the place that each value came from."""

from .keys import KEYS, Key
from .loading import load_settings
from .places import data_folder, default_store, project_file, user_file
from .saving import save_setting
from .settings import Compaction, Hooks, Settings
from .using import open_settled_store, preset_for

__all__ = [
    "KEYS",
    "Compaction",
    "Hooks",
    "Key",
    "Settings",
    "data_folder",
    "default_store",
    "load_settings",
    "open_settled_store",
    "preset_for",
    "project_file",
    "save_setting",
    "user_file",
]
