"""The inspector: pages that show what a session kept, what it lost, and why.

Its HTTP stack is the extra `web`.
"""

from .access import Access
from .server import Inspector, listen, serve_inspector

__all__ = ["Access", "Inspector", "listen", "serve_inspector"]
