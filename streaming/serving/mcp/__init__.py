"""The Model Context Protocol: tools for assistants, answered by the official SDK."""

from streaming.serving.mcp.route import MISSING, PATH, McpEndpoint
from streaming.serving.mcp.tool import Told, Tool, ToolError

__all__ = ["MISSING", "PATH", "McpEndpoint", "Told", "Tool", "ToolError"]
