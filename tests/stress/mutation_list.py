"""All known ways to break the package that tests must notice."""

from __future__ import annotations

from .mutation import Mutation
from .mutations_of_compaction import COMPACTION
from .mutations_of_gateway import GATEWAY
from .mutations_of_messages import MESSAGES
from .mutations_of_sessions import SESSIONS
from .mutations_of_stores import STORES
from .mutations_of_trust import TRUST

MUTATIONS: tuple[Mutation, ...] = (*STORES, *SESSIONS, *COMPACTION, *MESSAGES, *GATEWAY, *TRUST)
