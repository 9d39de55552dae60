"""A local HTTP server that plays the providers, for tests through the real SDKs.

    def script(request: Request) -> Answer:
        return "a summary" if "summarize" in request.prompt else RateLimited(retry_after=0.1)

    with ProviderServer(script) as server:
        OpenAIChat("gpt-test", base_url=server.openai_url)          # also OpenAIResponses
        Anthropic("claude-test", base_url=server.anthropic_url)
        Gemini("gemini-test", base_url=server.gemini_url)
        server.requests                                             # the received requests, in order

A script is an answer for every request, a list of answers of which the last is repeated, or a function from the
request to an answer. An answer is a text, a `Say` (with reasoning and tool calls), or a fault. Requests that the
provider would refuse never reach the script: they get the provider's own error, also for invalid tools, results
without calls, changed reasoning, and with `ProviderServer(window=…)` for a prompt that is too long.
`request.disconnected` is set when the client disconnects before the end.
"""

from tests.providers.faults import Answer, Cut, Garbage, Overflow, RateLimited, Stall, Status, StreamError
from tests.providers.reply import Call, Say, signature
from tests.providers.request import Request
from tests.providers.server import ProviderServer, Script

__all__ = [
    "Answer",
    "Call",
    "Cut",
    "Garbage",
    "Overflow",
    "ProviderServer",
    "RateLimited",
    "Request",
    "Say",
    "Script",
    "Stall",
    "Status",
    "StreamError",
    "signature",
]
