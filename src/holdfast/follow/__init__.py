"""The list that is known and the list that is given: one digest, one search for what is common, named tolerances."""

from .digest import ChainedIds, chained_id, content_digest
from .follower import Follower, GivenList, ListMatch
from .known_lists import KnownBytes, KnownObjects
from .tolerances import CACHE_MARK, count_leading_system, without_cache_marks

__all__ = [
    "CACHE_MARK",
    "ChainedIds",
    "Follower",
    "GivenList",
    "KnownBytes",
    "KnownObjects",
    "ListMatch",
    "chained_id",
    "content_digest",
    "count_leading_system",
    "without_cache_marks",
]
