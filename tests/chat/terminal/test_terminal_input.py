"""The input in a real terminal: project instructions, history, mentions, shell commands, and live output."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

from harbor_model import HarborModel
from terminal_harness import TerminalChat
from terminal_screens import wait_until

from providers import Call, ProviderServer, Say


def test_input_mentions_shell_commands_and_history_across_starts(
    terminal: Callable[..., TerminalChat], serve: Callable[..., ProviderServer]
) -> None:
    command = {"command": "echo first boat; cat gate; echo last boat"}
    chat = terminal()
    server = serve(HarborModel({"Count": Say("", calls=(Call("run_command", command),))}))
    (chat.folder / "AGENTS.md").write_text("Speak of tides only.")
    (chat.folder / "tides.csv").write_text("low,3\nhigh,9\n")
    (chat.folder / "map.bin").write_bytes(b"\0\1\2")
    chat.start(f"{server.openai_url}#m", size=(100, 40))
    chat.wait_for_text("Project instructions: AGENTS.md (20 characters)")

    chat.screen.type("Read @tds")
    chat.wait_for_text("❯ @tides.csv")
    chat.press("Tab")
    chat.wait_for_text("Read @tides.csv")
    chat.send("and @map.bin").wait_for_text("Attached tides.csv (2 lines)", "map.bin is not attached", "Aye: Read @")
    chat.wait_idle()
    system, attached, prompt = server.requests[-1].body["messages"][:3]
    assert "Speak of tides only." in str(system) and "low,3" in str(attached)
    assert prompt["content"] == "Read @tides.csv and @map.bin"

    chat.send("!echo $((6*7)); echo oops >&2; exit 3").wait_for_text("42", "oops", "[exit code 3]")
    chat.send("!echo early; sleep 60").wait_for_text("│ early")
    chat.press("C-c").wait_for_text("Stopped: the command was not added")
    chat.send("Why?").wait_for_text("Aye: Why?")
    chat.wait_idle()
    ran = server.requests[-1].body["messages"][-2]
    assert ran["role"] == "user" and "$ echo $((6*7)); echo oops >&2; exit 3\n\n42\noops" in ran["content"]
    assert "sleep" not in str(server.requests[-1].body["messages"])
    os.mkfifo(chat.folder / "gate")
    chat.send("Count them.").wait_for_text("May the agent use run_command?", "y yes")
    chat.press("y").wait_for_text("│ first boat")
    (chat.folder / "gate").write_text("")
    shown = chat.wait_for_text("3 lines", "The tool is done.")
    assert "│ first boat" not in shown
    chat.send(" my secret is 1234").wait_for_text("Aye: my secret")
    chat.wait_idle()
    chat.screen.type("/quit")
    chat.quit("Enter")

    stored = chat.place / ".local/state/holdfast/input_history.jsonl"
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600
    assert "Why?" in stored.read_text() and "1234" not in stored.read_text()

    chat.start(f"{server.openai_url}#m", "--no-project-instructions", size=(100, 40))
    assert "Project instructions" not in chat.screen.text()
    chat.press("Up", "Up", "Up").wait_for_text("❯ Why?")
    chat.press("C-c", "C-r")
    chat.screen.type("tide")
    chat.wait_for_text("history search: tide", "❯ Read @tides.csv and @map.bin")
    chat.press("Escape").wait_without_text("history search")
    chat.press("C-r")
    chat.screen.type("tide")
    chat.press("Enter")
    chat.wait_without_text("history search")
    chat.press("Enter").wait_for_text("Aye: Read @tides.csv")
    assert "Speak of tides" not in str(server.requests[-1].body["messages"])


def test_model_is_chosen_from_a_list_and_images_are_sent_where_it_takes_them(
    terminal: Callable[..., TerminalChat], serve: Callable[..., ProviderServer]
) -> None:
    chat, server = terminal(), serve(HarborModel({}))
    dropped = chat.place / "my chart.png"
    for picture in (chat.folder / "berth.png", dropped):
        picture.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(8))
    (chat.folder / ".mcp.json").write_text('{"mcpServers": {"tides": {"command": "touch", "args": ["started"]}}}')
    chat.start(f"{server.openai_url}#m", size=(100, 40), OPENAI_BASE_URL=server.openai_url)
    chat.wait_for_text("May the agent use mcp_server?", "starts: touch started")
    chat.press("Escape").wait_idle()
    chat.send("/mcp").wait_for_text("refused: you did not agree to start it")
    assert not (chat.folder / "started").exists()
    chat.send("What is on @berth.png?").wait_for_text("berth.png is not attached: the model catalog", "Aye: What is")
    chat.wait_idle()
    assert server.requests[-1].body["messages"][-1]["content"] == "What is on @berth.png?"
    chat.send("/model").wait_for_text("Models", "current", "openai:gpt-5")
    chat.screen.type("4o-mini")
    chat.wait_for_text("❯ openai:gpt-4o-mini")
    chat.press("Enter").wait_for_text("This conversation now uses", "#gpt-4o-mini.")
    chat.screen.paste(str(dropped).replace(" ", "\\ "))
    chat.wait_for_text('my chart.png"')
    requests = len(server.requests)
    chat.send("and @berth.png").wait_for_text("Attached", "berth.png (image)")
    wait_until(chat.screen, lambda _: len(server.requests) > requests, "a request")
    chat.wait_idle()
    sent = server.requests[-1].body
    kinds = [part["type"] for part in sent["messages"][-1]["content"]]
    assert sent["model"] == "gpt-4o-mini" and kinds == ["text", "image_url", "image_url"]
