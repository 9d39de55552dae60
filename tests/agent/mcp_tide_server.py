"""An MCP server for tests: `python mcp_tide_server.py` on standard input and output, with PORT over HTTP."""

from __future__ import annotations

import base64
import os
import sys

from mcp.server.mcpserver import Image, MCPServer

server = MCPServer("tides")


@server.tool()
def low_water(harbor: str) -> str:
    """Tells when the water is low."""
    return f"In {harbor} the water is low at 3; {os.environ.get('TIDE_SOURCE', 'no source')}."


@server.tool()
def chart() -> Image:
    """Draws a chart."""
    return Image(data=base64.b64decode("iVBORw0KGgo="), format="png")


@server.tool()
def sink() -> str:
    """Ends the server."""
    print("the server sank", file=sys.stderr, flush=True)
    os._exit(3)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run("stdio")
