"""Narrowing of values whose types are not known before they were looked at: what JSON holds."""

from __future__ import annotations

from typing import Any, TypeGuard


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether a value read from JSON is an object (its keys are strings)."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Whether a value read from JSON is a list."""
    return isinstance(value, list)
