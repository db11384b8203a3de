"""Words to settings: the rules of vLLM's `FlexibleArgumentParser` (vllm/utils/argparse_utils.py, 0.33.0).

Underscores count as dashes; `--a.b.c value` builds an object, `--a.b+ x,y` a list in it; `-O3` is `--optimization-level
3`; unambiguous beginnings of names are accepted; of an option given twice the later wins. Objects built from dotted
words are appended after everything else, so they replace one that was given whole. Ours: both forms of a switch given
together (`--x` and `--no-x`, in one file or on one command line) are refused, because only their order would decide.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from .errors import ConfigError, shown
from .options import Option, dashed, resolve, spellings
from .values import human_int, parse_value
from .yamlfile import Word

NEGATIVE = re.compile(r"-\d+|-\d*\.\d+")


@dataclass(frozen=True)
class Given:
    """An option as it was given last: its value (a switch: True or False) and where."""

    option: Option
    value: Any
    place: str
    text: str


@dataclass
class Settings:
    """All options given, by name; the model; what a reader should be warned of; environment variables with their
    places.
    """

    given: dict[str, Given] = field(default_factory=dict[str, Given])
    model: Word | None = None
    warnings: list[str] = field(default_factory=list[str])
    env: dict[str, Word] = field(default_factory=dict[str, Word])

    def value(self, name: str) -> Any:
        """The value given for an option, or None."""
        found = self.given.get(name)
        return None if found is None else found.value

    def place(self, name: str) -> str:
        """Where an option was given."""
        return self.given[name].place


def parse_words(words: Sequence[Word], settings: Settings, model: bool = True) -> None:
    """Read one layer (a file, or a command line) into the settings; a later layer overrides an earlier one.

    `model` allows one word that belongs to no option: the model.
    """
    layer: dict[str, Given] = {}
    queue = _gather_dotted(_prepare(words), settings)
    at = 0
    while at < len(queue):
        word = queue[at]
        if _is_option(word.text):
            at = _take(queue, at, layer, settings)
            continue
        if not model or settings.model is not None:
            fix = "if it is meant as a switch's value, write --name or --no-name alone; quote texts with spaces"
            raise ConfigError(word.place, f"{shown(word.text)} belongs to no option", fix)
        settings.model = word
        at += 1
    for name, given in layer.items():
        earlier = settings.given.get(name)
        if earlier is not None and earlier.value != given.value:
            settings.warnings.append(f"--{name}: {given.place} overrides {earlier.place}")
        settings.given[name] = given


def _prepare(words: Sequence[Word]) -> list[Word]:
    """The words with `-O` written out."""
    out: list[Word] = []
    for at, word in enumerate(words):
        if word.text.startswith("-O") and word.text != "-O":
            level = word.text[2:].removeprefix("=")
            out += [Word("--optimization-level", word.place), Word(level, word.place)]
        elif word.text == "-O" and at + 1 < len(words):
            out.append(Word("--optimization-level", word.place))
        else:
            out.append(word)
    return out


def _gather_dotted(words: list[Word], settings: Settings) -> list[Word]:
    """The words with every `--a.b value` taken out and appended as `--a {"b": value}`."""
    plain: list[Word] = []
    objects: dict[str, tuple[dict[str, Any], Word]] = {}
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        name, equals, text = word.text.partition("=")
        if not re.match(r"--?[A-Za-z]", name) or "." not in name:
            plain.append(word)
            continue
        if not equals:
            if at == len(words):
                raise ConfigError(word.place, f"{shown(name)} has no value", "write a value after it")
            text = words[at].text
            at += 1
        if name.endswith("+"):
            name, text = name[:-1], json.dumps(text.split(","))
        key, *path = dashed(name).split(".")
        target, _ = objects.setdefault(key, ({}, word))
        _put(target, path, _loose_value(text), word.place)
    for key, (target, word) in objects.items():
        if any(w.text == key or w.text.startswith(key + "=") for w in plain):
            settings.warnings.append(f"{word.place}: vLLM lets the dotted {key}.… replace the whole {key} given elsewhere")
        plain += [Word(key, word.place), Word(json.dumps(target), word.place)]
    return plain


def _loose_value(text: str) -> Any:
    """The value of a dotted word: JSON, else a suffixed number, else text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return human_int(text)
    except ValueError:
        return text


def _put(target: dict[str, Any], path: list[str], value: Any, place: str) -> None:
    """Set a nested key; lists given twice are joined, as in vLLM."""
    for key in path[:-1]:
        inner = target.setdefault(key, {})
        if not isinstance(inner, dict):
            raise ConfigError(place, f"{shown(key)} is given both as a value and as an object", "keep one of them")
        target = cast("dict[str, Any]", inner)
    old = target.get(path[-1])
    if isinstance(old, list) and isinstance(value, list):
        value = cast("list[Any]", old) + cast("list[Any]", value)
    target[path[-1]] = value


def _take(words: list[Word], at: int, layer: dict[str, Given], settings: Settings) -> int:
    """Read the option at `at` with its values; the place of the next word."""
    word = words[at]
    name, explicit = _split(word)
    spelling, full = resolve(name, word.place)
    if full != dashed(name):
        settings.warnings.append(f"{word.place}: {name} is read as {full} (vLLM takes unambiguous beginnings)")
    option = spelling.option
    if not option.takes_value:
        if explicit is not None:
            raise ConfigError(word.place, f"{shown(name)} takes no value", f"write --{option.name} or --no-{option.name} alone")
        _record(layer, Given(option, spelling.on, word.place, full), settings)
        return at + 1
    texts = [explicit] if explicit is not None else _following(words, at + 1, option)
    if not texts and option.kind != "maybe-text":
        raise ConfigError(word.place, f"--{option.name} needs a value", "write one after it")
    if option.kind == "list":
        value: Any = texts
    else:
        value = parse_value(option, texts[0], word.place) if texts else True
    _record(layer, Given(option, value, word.place, " ".join(texts)), settings)
    return at + 1 + (0 if explicit is not None else len(texts))


def _is_option(text: str) -> bool:
    """Whether argparse takes a word for an option rather than a value."""
    return len(text) > 1 and text[0] == "-" and not NEGATIVE.fullmatch(text) and (" " not in text.partition("=")[0])


def _split(word: Word) -> tuple[str, str | None]:
    """The option's name and the value glued to it, if any: `--x=1`, `-tp=2`, `-n2`."""
    name, equals, text = word.text.partition("=")
    if equals:
        return name, text
    if not word.text.startswith("--") and word.text not in spellings() and word.text[:2] in spellings():
        return word.text[:2], word.text[2:]
    return word.text, None


def _following(words: list[Word], at: int, option: Option) -> list[str]:
    """The words after an option that are its values."""
    texts: list[str] = []
    while at < len(words) and not _is_option(words[at].text) and (option.kind == "list" or not texts):
        texts.append(words[at].text)
        at += 1
    return texts


def _record(layer: dict[str, Given], given: Given, settings: Settings) -> None:
    """Note an option; within one layer a switch must not be both on and off."""
    name = given.option.name
    earlier = layer.get(name)
    if earlier is not None and earlier.value != given.value:
        if not given.option.takes_value:
            where = f"{earlier.place} and {given.place}" if earlier.place != given.place else given.place
            raise ConfigError(where, f"{earlier.text} and {given.text} contradict each other", "keep one of them")
        settings.warnings.append(f"--{name} is given twice; the later one, {given.place}, counts")
    layer[name] = given
