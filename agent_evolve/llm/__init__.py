"""Models behind one protocol; usage, prices and caps.

    from agent_evolve.llm import Budget, Ledger, Message, Request, resolve_model

    ledger = Ledger(Budget(max_usd=5.0))
    model = ledger.meter(resolve_model("claude-sonnet-5-5"), role="agent")
    print(model.complete(Request([Message("user", "Hello")])).text, ledger.usd)

The protocol's types load at once; everything else on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .types import Completion, Message, Model, Request, Tool, ToolCall, ToolResult, Usage

if TYPE_CHECKING:
    from .attribution import attributed as attributed
    from .budget import Budget as Budget
    from .ledger import Ledger as Ledger
    from .ledger import Role as Role
    from .replay import Replay as Replay
    from .resolve import resolve_model as resolve_model
    from .scripted import ScriptedModel as ScriptedModel
    from .tool_loop import BoundTool as BoundTool
    from .tool_loop import ToolHandler as ToolHandler
    from .tool_loop import ToolLoopResult as ToolLoopResult
    from .tool_loop import run_tools as run_tools
    from .totals import Totals as Totals
    from .totals import totals_of as totals_of

_HOMES = {
    "attributed": "attribution",
    "Budget": "budget",
    "Ledger": "ledger",
    "Role": "ledger",
    "Replay": "replay",
    "Totals": "totals",
    "totals_of": "totals",
    "resolve_model": "resolve",
    "ScriptedModel": "scripted",
    "BoundTool": "tool_loop",
    "ToolHandler": "tool_loop",
    "ToolLoopResult": "tool_loop",
    "run_tools": "tool_loop",
}

__all__ = [
    "BoundTool",
    "Budget",
    "Completion",
    "Ledger",
    "Message",
    "Model",
    "Replay",
    "Request",
    "Role",
    "ScriptedModel",
    "Tool",
    "ToolCall",
    "ToolHandler",
    "ToolLoopResult",
    "ToolResult",
    "Totals",
    "Usage",
    "attributed",
    "resolve_model",
    "run_tools",
    "totals_of",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
