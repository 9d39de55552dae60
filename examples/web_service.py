"""Chat sessions behind an HTTP API: stored in SQLite, compacted when they approach the model's window.

    pip install 'holdfast-context[openai]' starlette uvicorn
    OPENAI_API_KEY=… python examples/web_service.py 8000

    curl -X POST localhost:8000/sessions                                     -> {"id": "…"}
    curl -X POST localhost:8000/sessions/ID -d '{"text": "Hello"}'           -> {"reply": "…", "tokens": 31}
    curl localhost:8000/sessions/ID                                          -> {"version": 2, "tokens": 31}

OPENAI_BASE_URL and OPENAI_MODEL select another server and model, WINDOW its context window, STORE another store.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from openai import AsyncOpenAI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from holdfast import HoldfastError, Keeper, SessionService, open_store
from holdfast.errors import UnknownSession

MODEL = os.environ.get("OPENAI_MODEL", "gpt-5-mini")
WINDOW = int(os.environ.get("WINDOW", "0")) or None
STORE = os.environ.get("STORE", "sqlite:///sessions.db")


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[dict[str, Any]]:
    async with SessionService(open_store(STORE)) as sessions, AsyncOpenAI() as client:
        yield {"sessions": sessions, "client": client}


async def create(request: Request) -> JSONResponse:
    session = await request.state.sessions.create(model=MODEL, format="openai-chat", system="Answer briefly.")
    return JSONResponse({"id": session.id}, 201)


async def reply(request: Request) -> JSONResponse:
    sessions: SessionService = request.state.sessions
    session_id = request.path_params["id"]
    await sessions.append(session_id, {"role": "user", "content": (await request.json())["text"]})
    keeper = Keeper(sessions, session_id, model=MODEL, window=WINDOW)
    context = await keeper.prepare_step()  # compacts if the window is nearly full
    async with request.state.client.chat.completions.stream(
        model=MODEL, stream_options={"include_usage": True}, **context.request
    ) as stream:
        completion = await stream.get_final_completion()
    text = completion.choices[0].message.content
    await keeper.on_step_finish({"role": "assistant", "content": text}, completion.usage)
    return JSONResponse({"reply": text, "tokens": (await keeper.context()).tokens})


async def show(request: Request) -> JSONResponse:
    context = await request.state.sessions.context(request.path_params["id"])
    return JSONResponse({"version": context.version, "tokens": context.tokens, "messages": len(context)})


async def failed(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"error": str(error)}, 404 if isinstance(error, UnknownSession) else 400)


app = Starlette(
    routes=[
        Route("/sessions", create, methods=["POST"]),
        Route("/sessions/{id}", reply, methods=["POST"]),
        Route("/sessions/{id}", show),
    ],
    exception_handlers={HoldfastError: failed},
    lifespan=lifespan,
)

if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), log_level="warning")
