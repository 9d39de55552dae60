"""The ledger: what must survive a compaction, taken from the history without a model, and mergeable."""

from .carry import carried, is_page
from .entries import File, Ledger
from .facts import Fact, missing, must_keep
from .folders import base_name, by_folder
from .headings import OPENING
from .name_worth import name_worth
from .names import kind_of, names_in, words_in
from .notebook import Notebook
from .page import Writer
from .reread import reread
from .sheet import Page, Sheet
from .shortening import READABLE, clipped, fitting
from .speakers import task_in

__all__ = [
    "OPENING",
    "READABLE",
    "Fact",
    "File",
    "Ledger",
    "Notebook",
    "Page",
    "Sheet",
    "Writer",
    "base_name",
    "by_folder",
    "carried",
    "clipped",
    "fitting",
    "is_page",
    "kind_of",
    "missing",
    "must_keep",
    "name_worth",
    "names_in",
    "reread",
    "task_in",
    "words_in",
]
