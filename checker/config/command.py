"""A pasted command line: environment, program, options, and the config file it names."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from .errors import ConfigError, did_you_mean, shown
from .options import resolve
from .parse import Settings, parse_words
from .yamlfile import FileWords, Word, read_config

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
API_SERVER = "vllm.entrypoints.openai.api_server"
_CLI_MODULES = ("vllm", "vllm.entrypoints.cli.main")
READ_FROM_ENV = ("VLLM_USE_V2_MODEL_RUNNER", "VLLM_USE_SIMPLE_KV_OFFLOAD", "VLLM_USE_RAY_V2_EXECUTOR_BACKEND")
"""The environment variables that decide something here."""
FALSE_MATTERS = frozenset(
    [
        "async-scheduling",
        "enable-prefix-caching",
        "enable-chunked-prefill",
        "scheduler-reserve-full-isl",
        "disable-hybrid-kv-cache-manager",
    ]
)
"""The switches whose off differs from their default and reaches the model."""


def settings_of_file(path: str, env: Mapping[str, str]) -> Settings:
    """The settings of a config file on its own.

    A `false` is taken as written: which of vLLM's entry points will read the file is not known (see `yamlfile`). A
    warning says so where it matters.
    """
    settings = Settings(env=_relevant(env))
    file = read_config(path)
    parse_words([*file.words, *_negations(file)], settings, model=False)
    for item in file.dropped:
        name = resolve(f"--{item.key}", item.place)[0].option.name
        if name in FALSE_MATTERS:
            settings.warnings.append(
                f"{item.place}: '{item.key}: false' is taken as off, but `vllm serve --config` drops a false and keeps "
                f"the default (0.23.0 to 0.33.0); write 'no-{name}: true'"
            )
    return settings


def settings_of_command(argv: Sequence[str], env: Mapping[str, str]) -> Settings:
    """The settings of a command line; flags override the file named by --config, and assignments in front override
    `env`.
    """
    words, own_env, program = _program(_words(argv))
    settings = Settings(env={**_relevant(env), **own_env})
    words, path = _without_config(words, settings)
    if path is not None:
        file = read_config(path.text)
        honoured = program == API_SERVER
        negations = _negations(file, dashed_only=True) if honoured else []
        parse_words([*file.words, *negations], settings, model=False)
        _warn_dropped(file, settings, honoured)
    parse_words(words, settings)
    return settings


def _words(argv: Sequence[str]) -> list[Word]:
    """The arguments as words with places; one argument that holds a whole command is split as a shell would."""
    texts = list(argv)
    if len(texts) == 1 and re.search(r"\s", texts[0].strip()):
        try:
            texts = shlex.split(texts[0], comments=True)
        except ValueError as error:
            raise ConfigError("command line", f"cannot be split into words ({error})", "close the quotes") from None
    texts = [text for text in texts if text not in ("\\", "\n")]
    if not texts:
        raise ConfigError("command line", "nothing was given", "write: vllm serve MODEL --…")
    return [Word(text, f"argument {at} ({_shown(text)})") for at, text in enumerate(texts, 1)]


def _shown(text: str) -> str:
    """An argument in a message: the option's name only."""
    name = text.partition("=")[0] if text.startswith("-") else text
    return name if len(name) <= 40 else name[:37] + "..."


def _program(words: list[Word]) -> tuple[list[Word], dict[str, Word], str]:
    """The options of a command, its environment assignments, and which program reads them."""
    env: dict[str, Word] = {}
    rest = list(words)
    while rest and (rest[0].text in ("env", "export", "exec", "nohup", "sudo", "$") or _ASSIGNMENT.fullmatch(rest[0].text)):
        name, equals, text = rest[0].text.partition("=")
        if equals:
            env[name] = Word(text, f"environment {name}")
        rest.pop(0)
    if not rest or rest[0].text.startswith("-"):
        return rest, env, "serve"
    program = rest[0].text.rpartition("/")[2]
    if re.fullmatch(r"python[\d.]*", program) and len(rest) > 2 and rest[1].text == "-m":
        module = rest[2].text
        if module == API_SERVER:
            return rest[3:], env, API_SERVER
        if module in _CLI_MODULES:
            program, rest = "vllm", rest[2:]
    if program == "serve":
        return rest[1:], env, "serve"
    if program != "vllm":
        rule = f"{shown(rest[0].text)} does not start vLLM"
        raise ConfigError(
            rest[0].place,
            rule,
            did_you_mean(program, ["vllm"], f"write: vllm serve MODEL --…, or python -m {API_SERVER} …"),
        )
    if len(rest) < 2 or rest[1].text != "serve":
        given = rest[1] if len(rest) > 1 else rest[0]
        raise ConfigError(given.place, "only `vllm serve` starts an engine that can be checked", "write: vllm serve MODEL --…")
    return rest[2:], env, "serve"


def _without_config(words: list[Word], settings: Settings) -> tuple[list[Word], Word | None]:
    """The words without `--config FILE`, and that file. vLLM looks for the lone word `--config` only."""
    places = [at for at, word in enumerate(words) if word.text == "--config"]
    glued = next((word for word in words if word.text.startswith("--config=")), None)
    if glued is not None:
        settings.warnings.append(f"{glued.place}: vLLM does not read a file given as --config=FILE; write --config FILE")
        words = [word for word in words if word is not glued]
        places = [at for at, word in enumerate(words) if word.text == "--config"]
    if not places:
        return words, None
    if len(places) > 1:
        raise ConfigError(words[places[1]].place, "--config is given twice, and vLLM takes one file", "merge the files")
    at = places[0]
    if at + 1 == len(words):
        raise ConfigError(words[at].place, "--config needs a file", "write: --config FILE.yaml")
    return words[:at] + words[at + 2 :], words[at + 1]


def _negations(file: FileWords, dashed_only: bool = False) -> list[Word]:
    """The `--no-` words that stand for a file's `false`s."""
    out: list[Word] = []
    for item in file.dropped:
        spelling, full = resolve(f"--{item.key}", item.place)
        exact = full == f"--{item.key}" or not dashed_only
        if spelling.option.kind == "bool" and spelling.on and exact:
            out.append(Word(f"--no-{spelling.option.name}", item.place))
    return out


def _warn_dropped(file: FileWords, settings: Settings, honoured: bool) -> None:
    """Warn of every `false` that vLLM drops and that would have mattered."""
    for item in file.dropped:
        name = resolve(f"--{item.key}", item.place)[0].option.name
        if name in FALSE_MATTERS and not (honoured and item.key == name):
            settings.warnings.append(
                f"{item.place}: vLLM drops '{item.key}: false' and keeps the default (0.23.0 to 0.33.0); "
                f"write 'no-{name}: true'"
            )


def _relevant(env: Mapping[str, str]) -> dict[str, Word]:
    """The variables of an environment that decide something here."""
    return {name: Word(env[name], f"environment {name}") for name in READ_FROM_ENV if name in env}
