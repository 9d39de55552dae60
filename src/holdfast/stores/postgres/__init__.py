"""Sessions in PostgreSQL, for several servers at once."""

from .store import PostgresStore

__all__ = ["PostgresStore"]
