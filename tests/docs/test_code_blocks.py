"""Runs every Python and console block of README.md and docs/; how to write one: tools/code_blocks.py."""

from pathlib import Path

import pytest
from code_blocks import ROOT, blocks_of, failures_of, matches

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def failures(tmp_path: Path, text: str) -> list[str]:
    """Runs a page given as text."""
    return list(failures_of(Path("page.md"), tmp_path, text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_run_as_shown(page: Path, tmp_path: Path) -> None:
    found = list(failures_of(page, tmp_path))
    assert not found, "\n" + "\n".join(found)


def test_there_are_blocks_to_run() -> None:
    languages = [block.language for page in PAGES for block in blocks_of(page)]
    assert "console" in languages
    assert "python" in languages
    assert any(block.language == "console" for block in blocks_of(ROOT / "README.md"))


def test_a_right_page_passes(tmp_path: Path) -> None:
    page = """\
```python title="one.py"
x = 1
```
```python title="one.py"
assert x == 1
```
```python fails
assert False
```
~~~yaml title="config.yaml"
key: value
~~~
```console
$ cat config.yaml \\
>   one.py
key: value
x = 1
...
$ ls docs > listing; echo $PWD; false
/...
$ echo $?
1
```
"""
    assert failures(tmp_path, page) == []


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("```python\nassert False\n```", "page.md:2: expected exit code 0, got exit code 1"),
        ("```python fails\npass\n```", "page.md:2: expected a failure, got exit code 0"),
        ("```console\n$ echo one\n$ echo two\ntwo\n```", "page.md:2: the output is not as shown; it was:\none"),
        ("```console\n$ echo one\none\n$ false\n```", "page.md:4: exit code 1: show it"),
        ("```console\n$ echo one\ntwo\n```", "page.md:2: the output is not as shown; it was:\none"),
        ("```console\n$ exit 3\n```", "page.md:2: the commands of this block did not all end"),
    ],
)
def test_a_wrong_block_is_named(tmp_path: Path, block: str, message: str) -> None:
    (found,) = failures(tmp_path, block)
    assert found.startswith(message)


@pytest.mark.parametrize("text", ["```console\nno command\n```", "```python\nnever closed\n"])
def test_a_malformed_block_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError, match=r"page\.md:[12]: "):
        failures(tmp_path, text)


@pytest.mark.parametrize(
    ("shown", "got", "expected"),
    [
        ("a", "a", True),
        ("a", "a b", False),
        ("a\n...\nd", "a\nb\nc\nd", True),
        ("a\n...\nd", "a\nd", True),
        ("a\n...\nd", "a\nb", False),
        ("in ... s", "in 0.3 s", True),
        ("in ... s", "in 0.3\ns", False),
        ("", "a", False),
    ],
)
def test_left_out_text(shown: str, got: str, expected: bool) -> None:
    assert matches(tuple(shown.splitlines()), tuple(got.splitlines())) is expected
