"""Weights of local models."""

from __future__ import annotations

WEIGHTS: dict[str, object] = {}
