"""The list that is known and the list that is given: one digest, one search for what is common, named tolerances."""

from .digest import CACHE_MARK, ChainedIds, chained_id, content_digest, without_cache_marks
from .follower import Follower, GivenList, KnownBytes, KnownObjects, ListMatch, count_leading_system

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
