"""The gateway: any agent keeps its context inside the window by changing one URL.

Its HTTP stack is the extra `gateway`.
"""

from .options import GatewayOptions, parse_upstreams
from .server import Gateway
from .vendors.sealed_items import load_item_keys

__all__ = ["Gateway", "GatewayOptions", "load_item_keys", "parse_upstreams"]
