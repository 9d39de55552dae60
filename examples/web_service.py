"""A chat with tools behind HTTP: replies are streamed, any number of replicas share a store, and each may be killed.

    pip install '.[openai]' starlette uvicorn
    OPENAI_API_KEY=… python examples/web_service.py 8000

    curl -X POST localhost:8000/sessions                                            -> {"id": "…"}
    curl -N -X PUT localhost:8000/sessions/ID/turns/1 -d '{"text": "6 times 7?"}'   -> data: {"delta": "42"} …

The client names each turn. If the connection breaks it sends the same request again, to any replica: the turn goes on
where it stopped, or its reply comes back. STORE=postgresql://… is for several machines, and QUEUE=redis://… for
`holdfast worker`. OPENAI_BASE_URL and OPENAI_MODEL select another server and model, WINDOW its context window.
"""

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from openai import AsyncOpenAI, BadRequestError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from holdfast import HoldfastError, SessionService, open_store
from holdfast.jobs import BackgroundCompactor, BullMQQueue

MODEL, QUEUE = os.environ.get("OPENAI_MODEL", "gpt-5-mini"), os.environ.get("QUEUE")
STORE, WINDOW = os.environ.get("STORE", "sqlite:///sessions.db"), int(os.environ.get("WINDOW", "0")) or None
NUMBERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}
TOOLS = [{"type": "function", "function": {"name": "multiply", "description": "a times b", "parameters": NUMBERS}}]


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[dict[str, Any]]:
    sessions = SessionService(open_store(STORE), preset="holdfast", window=WINDOW)
    background = BackgroundCompactor(sessions, BullMQQueue(QUEUE) if QUEUE else None)
    async with sessions, background, AsyncOpenAI() as client:
        yield {"sessions": sessions, "background": background, "client": client}


async def create(request: Request) -> JSONResponse:
    session = await request.state.sessions.create(model=MODEL, format="openai-chat", system="Be brief.", tools=TOOLS)
    return JSONResponse({"id": session.id}, 201)


async def answer(request: Request, session_id: str, turn_id: str, text: str) -> AsyncIterator[dict[str, Any]]:
    async with request.state.sessions.turn(session_id, id=turn_id) as turn:
        if not turn.done:
            await turn.say(text)
        while not turn.done:
            results = [(call, call.arguments_dict["a"] * call.arguments_dict["b"]) for call in turn.calls]
            await turn.results(
                [{"role": "tool", "tool_call_id": c.id, "content": str(result)} for c, result in results]
            )
            sent = {"model": MODEL, "stream_options": {"include_usage": True}, **await turn.request()}
            try:
                async with request.state.client.chat.completions.stream(**sent) as stream:
                    async for event in stream:
                        if event.type == "content.delta":
                            yield {"delta": event.delta}
                    completion = await stream.get_final_completion()
            except BadRequestError as error:
                if not (await turn.overflow(error)).retry:
                    raise
            else:
                cut = completion.choices[0].finish_reason == "length"
                await (turn.cut_off if cut else turn.receive)(completion)
        yield {"reply": turn.reply["content"]}
    await request.state.background.on_turn_end(session_id)


async def turn(request: Request) -> StreamingResponse:
    text = (await request.json())["text"]

    async def events() -> AsyncIterator[str]:
        try:
            async for event in answer(request, request.path_params["id"], request.path_params["turn"], text):
                yield f"data: {json.dumps(event)}\n\n"
        except HoldfastError as error:
            yield f"data: {json.dumps({'error': str(error)})}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")


routes = [Route("/sessions", create, methods=["POST"]), Route("/sessions/{id}/turns/{turn}", turn, methods=["PUT"])]
app = Starlette(routes=routes, lifespan=lifespan)

if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), log_level="warning")
