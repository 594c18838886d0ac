"""Scripts as files: TOML with ``[[rule]]`` tables, or JSONL with one rule per line."""

import hashlib
import re
import tomllib
from pathlib import Path

import anyio
import msgspec

from assay.errors import ConfigError
from assay.runtime.models.scripted import Rule, ScriptedModel


class Script(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a script file holds.

    Attributes:
        rule: The rules, in order.
        context_tokens: Longest prompt and answer together, in tokens.
    """

    rule: tuple[Rule, ...] = ()
    context_tokens: int = 32_768


async def scripted_model(file: str) -> ScriptedModel:
    """The model of a script file; an empty name is the plain reader.

    Raises:
        ConfigError: If the file cannot be read or a rule is malformed; it says where.
    """
    if not file:
        return ScriptedModel()
    path = Path(file)
    try:
        content = await anyio.Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read the script {file!r}: {error.strerror}") from error
    script = parse_script(path, content)
    digest = hashlib.sha256(content).hexdigest()[:16]
    return ScriptedModel(
        script.rule, identity=f"scripted:{digest}", context_tokens=script.context_tokens
    )


def parse_script(path: Path, content: bytes) -> Script:
    """Read a script: JSONL if the file's name ends so, else TOML.

    Raises:
        ConfigError: If it is malformed; names the file, and the line or the rule.
    """
    script = _parse_lines(path, content) if path.suffix == ".jsonl" else _parse_toml(path, content)
    for number, rule in enumerate(script.rule, start=1):
        for pattern in (rule.question, rule.prompt):
            try:
                re.compile(pattern)
            except re.error as error:
                raise ConfigError(f"{path}, rule {number}: {pattern!r}: {error}") from error
    return script


def _parse_lines(path: Path, content: bytes) -> Script:
    rules: list[Rule] = []
    for number, line in enumerate(content.splitlines(), start=1):
        if line.strip():
            try:
                rules.append(msgspec.json.decode(line, type=Rule))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise ConfigError(f"{path}, line {number}: expected a rule: {error}") from error
    return Script(rule=tuple(rules))


def _parse_toml(path: Path, content: bytes) -> Script:
    try:
        return msgspec.convert(tomllib.loads(content.decode()), Script)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {error}") from error
