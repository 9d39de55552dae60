"""MCP servers as tools, in a real process with a real server."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from rpc_process import RpcProcess

from holdfast.agent.tools.mcp_client import McpServers
from holdfast.agent.tools.mcp_config import McpServerConfig, read_mcp_servers

pytest.importorskip("mcp")
SERVER = Path(__file__).resolve().parents[2] / "agent" / "mcp_tide_server.py"


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": f"mcp__tides__{name}", "arguments": arguments}]}


def test_rpc_project_server_starts_after_agreement_and_its_tools_ask(tmp_path: Path) -> None:
    tides = {"command": sys.executable, "args": [str(SERVER)], "env": {"TIDE_SOURCE": "from ${BOOK:-the almanac}"}}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"tides": tides}}))
    own = tmp_path / ".config" / "holdfast" / "mcp.json"
    own.parent.mkdir(parents=True)
    own.write_text(json.dumps({"mcpServers": {"gone": {"command": "/no/such/program"}, "bad": {}}}))
    steps = [call("low_water", harbor="Osterhaven"), call("chart"), call("sink"), "Done."]
    (tmp_path / "story.json").write_text(json.dumps({"steps": steps}))
    options = ["--model", f"script:{tmp_path / 'story.json'}", "--store", tmp_path / "s.db", "--trust"]
    with RpcProcess(tmp_path, *options, "--yes") as client:
        while not any("--yes does not agree to that" in record.get("error", "") for record in client.records):
            client.next_record()
    with RpcProcess(tmp_path, *options) as client:
        while not {"error", "approval_request"} <= {record["type"] for record in client.records}:
            client.next_record()
        first = {record["type"]: record for record in client.records}
        assert "MCP server gone did not start: No such file" in first["error"]["error"]
        asked = first["approval_request"]
        assert asked["tool"] == "mcp_server" and asked["arguments"]["starts"].endswith("mcp_tide_server.py")
        assert asked["arguments"]["env"] == {"TIDE_SOURCE": "from ${BOOK:-the almanac}"}
        client.send(type="approve", request=asked["id"], permission="yes")
        client.send(type="prompt", id="p", text="When is low water?")
        answers = []
        for _ in range(3):
            asked = client.wait_for_event("approval_request")
            client.send(type="approve", request=asked["id"], permission="yes")
            answers.append(client.wait_for_event("tool_finished"))
        assert asked["tool"] == asked["rule"] == "mcp__tides__sink"
        assert answers[0]["text"] == "In Osterhaven the water is low at 3; from the almanac."
        assert answers[1]["text"] == "[left out, since the model cannot read it: image]" and answers[2]["is_error"]
        assert client.wait_for_response("p")["data"]["text"] == "Done."
        while not any("tides is no longer available" in record.get("error", "") for record in client.records):
            client.next_record()
        assert any("(the server sank)" in record.get("error", "") for record in client.records)
    (tmp_path / "story.json").write_text(json.dumps({"steps": [call("low_water", harbor="Mole"), "Done."]}))
    with RpcProcess(tmp_path, *options, "--yes") as client:
        client.send(type="prompt", id="p", text="And in Mole?")
        assert "In Mole" in client.wait_for_event("tool_finished")["text"]
        assert client.wait_for_response("p")["data"]["text"] == "Done."
    rules = json.loads(own.with_name("permissions.json").read_text())[str(tmp_path)]
    assert [rule.split()[:2] for rule in rules] == [["mcp_server", "tides"]]


@pytest.mark.anyio
async def test_server_over_http_gets_headers_and_answers(tmp_path: Path) -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    async with await anyio.open_process([sys.executable, str(SERVER), str(port)], stderr=subprocess.DEVNULL) as process:
        try:
            with anyio.fail_after(30):
                while True:
                    try:
                        await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
                        break
                    except OSError:
                        await anyio.sleep(0.05)
            own = tmp_path / "mcp.json"
            address, headers = "http://127.0.0.1:${PORT}/mcp", {"Authorization": "Bearer ${KEY}"}
            entry = {"type": "http", "url": address, "headers": headers}
            own.write_text(json.dumps({"mcpServers": {"tides": entry, "no-key": {"url": "${MISSING}"}}}))
            configs, problems = read_mcp_servers(own, None, {"PORT": str(port), "KEY": "k"})
            assert configs[0].headers == {"Authorization": "Bearer k"}
            assert "'no-key'" in problems[0] and "the variable MISSING is not set" in problems[0]
            servers = McpServers(configs, tmp_path, _refuse, problems.append)
            async with anyio.create_task_group() as group:
                group.start_soon(servers.run)
                await servers.wait_started()
                assert next(tool.name for tool in servers.tools) == "mcp__tides__low_water"
                answer = await servers.servers[0].call("low_water", {"harbor": "Osterhaven"})
                assert answer.text.startswith("In Osterhaven the water is low at 3")
                assert (await servers.servers[0].call("chart", {})).media[0].data == "iVBORw0KGgo="
                failed = await servers.servers[0].call("low_water", {})
                assert failed.is_error and "harbor" in failed.text
                group.cancel_scope.cancel()
        finally:
            process.kill()


async def _refuse(config: McpServerConfig) -> bool:
    return False
