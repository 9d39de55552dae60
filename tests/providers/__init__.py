"""Local servers that speak the providers' own protocols, for tests that call a model for real.

    def script(request: Request) -> Answer:
        return "a summary" if "summarize" in request.prompt else RateLimited(retry_after=0.1)

    with ProviderServer(script) as server:
        OpenAIChat("gpt-test", base_url=server.openai_url)          # also OpenAIResponses
        Anthropic("claude-test", base_url=server.anthropic_url)
        Gemini("gemini-test", base_url=server.gemini_url)
        server.requests                                             # what was asked, in order

A script is an answer for every request, a list of answers of which the last is repeated, or a function from the
request to an answer. An answer is a text, a `Say` (which may think and call tools, too), or a fault. Requests that the
provider would refuse never reach the script: they get the provider's own error, also for tools, for results that
answer nothing, for thoughts that were changed, and with `ProviderServer(window=…)` for a prompt that is too long.
`request.disconnected` is set once the client hangs up in the middle.
"""

from .faults import Answer, Cut, Garbage, Overflow, RateLimited, Stall, Status, StreamError
from .request import Request
from .say import Call, Say, signature
from .server import ProviderServer, Script

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
