"""The ledger: what must survive a compaction, taken from the history without a model, and mergeable."""

from .carry import carried, is_page
from .entries import Ledger
from .headings import OPENING
from .notebook import Notebook
from .page import Page, Writer
from .reread import reread

__all__ = ["OPENING", "Ledger", "Notebook", "Page", "Writer", "carried", "is_page", "reread"]
