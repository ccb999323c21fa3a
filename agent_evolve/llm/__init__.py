"""Models behind one protocol; usage, prices and caps."""

from .types import Completion, Message, Model, Request, Tool, ToolCall, ToolResult, Usage

__all__ = ["Completion", "Message", "Model", "Request", "Tool", "ToolCall", "ToolResult", "Usage"]
