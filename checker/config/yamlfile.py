"""A vLLM `--config` file, turned into the command-line words that vLLM makes of it.

vLLM flattens the file and lets its argument parser do the rest (`load_config_file`, vllm/utils/argparse_utils.py,
0.33.0): `key: value` becomes `--key value`, a list several words, a mapping one JSON text, `true` becomes `--key`. So
do we, with the line of each key kept. What we refuse beyond vLLM: keys given twice, tags, files over a size, keys that
are not text.

A `false` needs care. `vllm serve --config` drops it in all four releases read (0.33.0 looks for `--no-key` among the
options of the outer parser, which has none), so the option keeps its default; only `python -m
vllm.entrypoints.openai.api_server --config` of 0.33.0 makes `--no-key` of it, and only for keys written with dashes.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from .errors import ConfigError, did_you_mean, shown
from .options import resolve
from .values import kind_of

MOST_BYTES = 256 * 1024
"""A config file larger than this is refused before it is read."""
MOST_NODES = 20_000
MOST_DEPTH = 64
_SAFE_TAGS = frozenset(
    f"tag:yaml.org,2002:{t}" for t in ["null", "bool", "int", "float", "timestamp", "str", "seq", "map", "merge", "value"]
)


@dataclass(frozen=True)
class Word:
    """One word of a command line and where it was written."""

    text: str
    place: str


@dataclass(frozen=True)
class Dropped:
    """A `false` in a config file, and where."""

    key: str
    place: str


@dataclass(frozen=True)
class FileWords:
    """A config file as words, and the `false`s in it that belong to switches."""

    words: tuple[Word, ...]
    dropped: tuple[Dropped, ...]


def read_config(path: str | Path) -> FileWords:
    """The words of a config file; `ConfigError` if it is no such file."""
    text = _read_text(Path(path))
    return _flatten(_entries(text, str(path)))


def _read_text(path: Path) -> str:
    """The text of a small regular UTF-8 file."""
    place = str(path)
    if path.suffix not in (".yaml", ".yml"):
        raise ConfigError(
            place, "vLLM takes only .yaml and .yml config files", "rename the file, or give the command line after --"
        )
    try:
        info = path.stat()
        if stat.S_ISDIR(info.st_mode):
            raise ConfigError(place, "a directory is no config file", "name a YAML file in it")
        if not stat.S_ISREG(info.st_mode):
            raise ConfigError(place, "not a regular file", "save the config to a file first")
        if info.st_size > MOST_BYTES:
            rule = f"{info.st_size} bytes, and a config file may have {MOST_BYTES}"
            raise ConfigError(place, rule, "give the file that vLLM's --config takes, not a log or weights")
        raw = path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(place, "there is no such file", _near_files(path)) from None
    except OSError as error:
        raise ConfigError(place, f"cannot be read ({error.strerror})", "check the path and its permissions") from None
    if not raw.strip():
        raise ConfigError(place, "the file is empty", "write options into it, such as 'max-num-seqs: 64'")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(place, f"not a text file (byte {error.start} is not UTF-8)", "give a YAML file in UTF-8") from None
    if "\0" in text:
        raise ConfigError(place, "not a text file (it contains a zero byte)", "give a YAML file in UTF-8")
    return text


def _near_files(path: Path) -> str:
    """A fix for a path that does not exist."""
    try:
        names = [p.name for p in path.parent.iterdir() if p.suffix in (".yaml", ".yml")]
    except OSError:
        return "check the path"
    return did_you_mean(path.name, names, "check the path")


def _entries(text: str, path: str) -> list[tuple[str, Any, str]]:
    """The top-level keys with their values and places, in order."""
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        if root is None:
            raise ConfigError(
                path, "the file says nothing (comments only)", "write options into it, such as 'max-num-seqs: 64'"
            )
        if not isinstance(root, yaml.MappingNode):
            what = "a list" if isinstance(root, yaml.SequenceNode) else "a single value"
            rule = f"a config file is a mapping from option to value, and this is {what}"
            raise ConfigError(_place(path, root), rule, "write one 'option: value' a line")
        reader = _Reader(loader, path)
        return [(key, reader.value(node, 1), place) for key, node, place in reader.pairs(root, 0)]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{path}:{mark.line + 1}" if mark else path
        rule = " ".join(part for part in (error.problem, error.context) if part)
        raise ConfigError(
            place, f"not valid YAML ({rule})", "correct the line; quote values that contain ': ' or '#'"
        ) from None
    except yaml.YAMLError as error:
        raise ConfigError(path, f"not valid YAML ({str(error).splitlines()[0]})", "give a YAML file in UTF-8") from None
    except RecursionError:
        raise ConfigError(path, "nested too deep", f"nest at most {MOST_DEPTH} levels") from None


def _place(path: str, node: yaml.Node) -> str:
    """File and line of a node."""
    return f"{path}:{node.start_mark.line + 1}"


class _Reader:
    """Turns YAML nodes into plain values, counting them, so that aliases cannot blow up."""

    def __init__(self, loader: yaml.SafeLoader, path: str) -> None:
        self._loader = loader
        self._path = path
        self._count = 0

    def value(self, node: yaml.Node, depth: int) -> Any:
        """The plain value of a node."""
        self._count += 1
        if self._count > MOST_NODES or depth > MOST_DEPTH:
            rule = f"more than {MOST_NODES} values or {MOST_DEPTH} levels once its aliases are expanded"
            raise ConfigError(_place(self._path, node), rule, "write the values out, without aliases")
        if node.tag not in _SAFE_TAGS:
            raise ConfigError(
                _place(self._path, node),
                f"the tag {shown(node.tag)} is not allowed",
                "remove it; vLLM reads plain YAML only",
            )
        if isinstance(node, yaml.MappingNode):
            return {key: self.value(child, depth + 1) for key, child, _ in self.pairs(node, depth)}
        if isinstance(node, yaml.SequenceNode):
            return [self.value(child, depth + 1) for child in cast("list[yaml.Node]", node.value)]
        try:
            return cast("Callable[[yaml.Node], Any]", self._loader.construct_object)(node)
        except (ValueError, OverflowError) as error:
            raise ConfigError(
                _place(self._path, node), f"not a valid value ({error})", "quote it if it is meant as text"
            ) from None

    def pairs(self, node: yaml.MappingNode, depth: int) -> list[tuple[str, yaml.Node, str]]:
        """Keys, value nodes and places of a mapping; merged (`<<`) keys come first and give way."""
        own: dict[str, tuple[yaml.Node, str]] = {}
        merged: dict[str, tuple[yaml.Node, str]] = {}
        if node.tag not in _SAFE_TAGS:
            raise ConfigError(
                _place(self._path, node),
                f"the tag {shown(node.tag)} is not allowed",
                "remove it; vLLM reads plain YAML only",
            )
        for key_node, child in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
            place = _place(self._path, key_node)
            if key_node.tag == "tag:yaml.org,2002:merge":
                merged.update({key: (value, at) for key, value, at in self._merged(child, depth)})
                continue
            key = self.value(key_node, depth)
            if not isinstance(key, str):
                raise ConfigError(
                    place,
                    f"a key must be text, not {kind_of(key)} ({shown(str(key))})",
                    "write the option's name, quoted if need be",
                )
            if key in own:
                raise ConfigError(place, f"{shown(key)} stands twice, first at {own[key][1]}", "keep one of them")
            own[key] = (child, place)
        return [(key, value, place) for key, (value, place) in {**merged, **own}.items()]

    def _merged(self, node: yaml.Node, depth: int) -> list[tuple[str, yaml.Node, str]]:
        """What a merge key brings in; of several mappings the first wins."""
        if depth > MOST_DEPTH:
            raise ConfigError(_place(self._path, node), "merge keys are nested too deep", "write the values out")
        if isinstance(node, yaml.MappingNode):
            return self.pairs(node, depth + 1)
        if isinstance(node, yaml.SequenceNode):
            children = cast("list[yaml.Node]", node.value)
            return [pair for child in reversed(children) for pair in self._merged(child, depth + 1)]
        raise ConfigError(_place(self._path, node), "'<<' takes a mapping", "write the values out")


def _flatten(entries: list[tuple[str, Any, str]]) -> FileWords:
    """The words that vLLM makes of the entries."""
    words: list[Word] = []
    dropped: list[Dropped] = []
    for key, value, place in entries:
        name = Word(f"--{key}", place)
        if value is True:
            words.append(name)
        elif value is False:
            dropped.append(Dropped(key, place))
            _known_switch(key, place)
        elif isinstance(value, list):
            texts = [str(item) for item in cast("list[Any]", value)]
            words += [name, *(Word(text, place) for text in texts)] if texts else []
        elif isinstance(value, dict):
            try:
                words += [name, Word(json.dumps(value), place)]
            except TypeError as error:
                raise ConfigError(
                    place, f"{shown(key)} cannot be written as JSON ({error})", "quote dates and the like"
                ) from None
        else:
            words += [name, Word(str(value), place)]
    return FileWords(tuple(words), tuple(dropped))


def _known_switch(key: str, place: str) -> None:
    """Refuse a `false` for a name that is no option, or for an option that takes a value."""
    spelling, _ = resolve(f"--{key}", place)
    if spelling.option.takes_value:
        raise ConfigError(place, f"{shown(key)} takes a value, not false", "write the value, or leave the option out")
