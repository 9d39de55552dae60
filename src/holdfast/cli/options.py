"""Options that several commands share."""

from __future__ import annotations

import click

from ..messages import FORMATS
from ..tokens import ENCODINGS, CharsPerConversation, CharsPerMessage, CharsPerPiece
from .names import OneOf

ESTIMATORS = (*ENCODINGS, CharsPerPiece.name, CharsPerMessage.name, CharsPerConversation.name)

file = click.argument("file", type=click.Path(readable=False), metavar="FILE")
model = click.option("--model", metavar="ID", help="The model whose window counts; else the one the file names.")
estimator = click.option(
    "--estimator", type=OneOf("estimator", ESTIMATORS), metavar="NAME", help="What counts tokens; else the model's."
)
format = click.option(
    "--format",
    type=OneOf("format", FORMATS, ("openai", "chat", "responses", "claude")),
    metavar="NAME",
    help=f"The wire format, where it cannot be told: {', '.join(FORMATS)}.",
)
session = click.option("--session", metavar="ID", help="Which session of a store.")
whole = click.option("--whole", is_flag=True, help="All that was ever said, not only what is in the context now.")
as_json = click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a report.")
