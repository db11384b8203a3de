"""Modules and functions stay short enough to be read at once."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("spec", "checker", "impl", "traces", "tools", "benchmarks", "examples")
SOURCES = sorted(path for name in FOLDERS for path in (ROOT / name).rglob("*.py") if "typing" not in path.parts)
MODULE_LINES = 500
FUNCTION_LINES = 40


def functions(tree: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Returns every function of a module, methods and nested ones too."""
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_sizes(path: Path) -> None:
    text = path.read_text()
    lengths = {node.name: (node.end_lineno or 0) - node.lineno + 1 for node in functions(ast.parse(text))}
    assert len(text.splitlines()) <= MODULE_LINES
    assert {name: length for name, length in lengths.items() if length > FUNCTION_LINES} == {}
