"""The official SDK of the Model Context Protocol, answering one message at a time: its only importer.

Nothing is kept between two requests: no session, no stream and no task.  So nobody can take up another's
session, a proxy may spread requests, and a client that goes away leaves nothing behind.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import mcp_types as types
import msgspec
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from starlette.types import Receive, Scope, Send

from streaming.serving.mcp.tool import Told, Tool, ToolError, answer_of, schema_of
from streaming.version import version

_ONLY_READS = types.ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)

_Found = TypeVar("_Found")
Run = Callable[[Callable[[], _Found]], Awaitable[_Found]]
"""Runs something in a thread."""


class Assistants:
    """Answers the messages of assistants (ASGI)."""

    def __init__(self, tools: Sequence[Tool], instructions: str, run: Run[Told]) -> None:
        """Prepare; ``run`` may raise ``ToolError`` where too much is asked at once."""
        self._tools = {tool.name: tool for tool in tools}
        self._listed = types.ListToolsResult(tools=[_listed(tool) for tool in tools])
        self._run = run
        self._server: Server[Any] = Server(
            "groupwatch",
            version=version(),
            title="groupwatch",
            instructions=instructions,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one POST."""
        manager = StreamableHTTPSessionManager(self._server, json_response=True, stateless=True)
        async with manager.run():
            await manager.handle_request(scope, receive, send)

    async def _list(self, _context: Any, _params: Any) -> types.ListToolsResult:
        return self._listed

    async def _call(self, _context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            known = ", ".join(self._tools)
            raise MCPError(code=types.INVALID_PARAMS, message=f"there is no such tool; there are {known}")
        try:
            told = await self._run(lambda: answer_of(tool, params.arguments))
        except ToolError as error:
            return types.CallToolResult(content=[_text(str(error))], is_error=True)
        data = msgspec.to_builtins(told.answer)
        return types.CallToolResult(
            content=[_text(told.text or msgspec.json.encode(told.answer).decode())], structured_content=data
        )


def _listed(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=schema_of(tool.arguments),
        output_schema=schema_of(tool.answer),
        annotations=_ONLY_READS,
    )


def _text(text: str) -> types.TextContent:
    """Return the text; halves of characters, which JSON can name and UTF-8 cannot write, are spelled out."""
    return types.TextContent(type="text", text=text.encode(errors="backslashreplace").decode())
