"""A model for the provider server that answers by keywords in the last prompt."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from providers import Answer, Request, Say

SUMMARY = """\
## Goal
The tides of the harbor are looked up for the skippers.
## Completed Work
- The tide tables were read.
## Next Steps
- Tell the skippers.
"""


class HarborModel:
    """Answers and summary can be changed while it runs."""

    def __init__(self, answers: Mapping[str, Answer], summary: Answer = SUMMARY) -> None:
        self.answers = dict(answers)
        self.summary = summary
        self.prompts: list[str] = []
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Answer:
        if "tools" not in request.body:
            return self.summary
        last = request.body["messages"][-1]
        with self._lock:
            if last["role"] == "tool":
                return Say("The tool is done.")
            text = str(last["content"])
            self.prompts.append(text)
            return next((answer for keyword, answer in self.answers.items() if keyword in text), Say(f"Aye: {text}"))
