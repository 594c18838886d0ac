"""``assay serve``: guarded memory in front of a model, for any client of the OpenAI API."""

import signal
import socket
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.options import BaseUrlOption, GuardOption, JsonOption, ServedEmbedderOption
from assay.cli.places import bank_at

if TYPE_CHECKING:
    from assay.runtime.facade import Runtime
    from assay.runtime.settings import ServeSettings, Settings

_INTERRUPTED = 130


def serve(  # noqa: PLR0913  # a command's options
    *,
    model: Annotated[
        str | None,
        typer.Option(help="local, local:PATH.gguf, openai:NAME, scripted[:FILE], cassette:FILE."),
    ] = None,
    bank: Annotated[
        str | None,
        typer.Option(help="Folder of the bank, or postgresql://...; made if missing."),
    ] = None,
    bus: Annotated[
        str | None,
        typer.Option(help="nats://...: turns are taken by this process and by every assay worker."),
    ] = None,
    work: Annotated[
        bool | None,
        typer.Option("--work/--no-work", help="With --bus: take turns in this process, too."),
    ] = None,
    evaluations: Annotated[
        str | None,
        typer.Option(help="Where experiments are asked: here, or queue: by every worker."),
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen at.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Port; 0: any free one.")
    ] = None,
    api_key: Annotated[
        str | None,
        typer.Option(help="Key clients must send; without it one is made and printed."),
    ] = None,
    base_url: BaseUrlOption = None,
    guard: GuardOption = None,
    embedder: ServedEmbedderOption = None,
    config: Annotated[
        Path | None,
        typer.Option(help="A TOML file with every setting; this command's are under serve."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only check the settings, and say what they are.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Speak the OpenAI API with a memory per user; only memories that earned it reach the model."""
    import anyio  # noqa: PLC0415  # `assay --help` does without

    from assay.cli.embedders import mismatch_names_the_option  # noqa: PLC0415
    from assay.cli.served import told  # noqa: PLC0415
    from assay.runtime.settings import Settings  # noqa: PLC0415

    given: dict[str, object] = {
        "model": model,
        "bank": bank,
        "bus": bus,
        "work": work,
        "evaluations": evaluations,
        "host": host,
        "port": port,
        "embedder": embedder,
        "base_url": base_url,
    }
    settings = told(Settings.load(config), given)
    keys = _keys(settings.serve, api_key)
    if check:
        anyio.run(_check, settings, keys, guard, as_json)
        return
    with mismatch_names_the_option():
        stopped_by = anyio.run(_serve, settings, keys, guard, as_json)
    if stopped_by is signal.SIGINT:
        raise typer.Exit(_INTERRUPTED)


def _keys(settings: "ServeSettings", api_key: str | None) -> dict[str, str]:
    """API key to tenant, from the options, the settings and the environment."""
    import os  # noqa: PLC0415
    import secrets  # noqa: PLC0415

    from assay.runtime.http.keys import SAFE, tenants_of  # noqa: PLC0415

    keys = tenants_of(settings.tenants, os.environ)
    own = api_key if api_key is not None or keys else secrets.token_urlsafe(24)
    every = keys if own is None else {**keys, own: ""}
    if min(map(len, every)) < SAFE:
        typer.echo(
            f"assay: an API key is shorter than {SAFE} characters: it can be guessed", err=True
        )
    return every


async def _check(
    settings: "Settings",
    keys: dict[str, str],
    guard: str | None,
    as_json: bool,  # noqa: FBT001
) -> None:
    """Everything that can be known before a model and a bank are opened."""
    import msgspec  # noqa: PLC0415
    from anyio import to_thread  # noqa: PLC0415

    from assay.cli.served import (  # noqa: PLC0415
        base_url_of,
        checked_places,
        without_passwords,
    )
    from assay.guards.methods import guard_named  # noqa: PLC0415
    from assay.runtime.http.keys import Keys  # noqa: PLC0415
    from assay.runtime.models.opening import parse_spec  # noqa: PLC0415
    from assay.stores.banks import shown  # noqa: PLC0415
    from assay.stores.embeddings import HashingEmbedder, open_embedder  # noqa: PLC0415

    Keys(keys)
    parse_spec(settings.serve.model)
    method = guard or settings.guard.method
    guard_named(
        method,
        on_undecided=settings.guard.on_undecided,
        seed=7,
        embedder=HashingEmbedder(),
    )
    await to_thread.run_sync(open_embedder, settings.serve.embedder)
    await base_url_of(settings.serve)
    checked_places(settings.serve)
    if as_json:
        checked = {
            "valid": True,
            "settings": without_passwords(settings),
            "tenants": len(set(keys.values())),
        }
        typer.echo(msgspec.json.encode(checked).decode())
        return
    served = settings.serve
    typer.echo(f"settings are valid: {served.model} at http://{served.host}:{served.port}")
    typer.echo(f"bank {shown(bank_at(served.bank))}, guard {method}, {len(keys)} API key(s)")


async def _serve(
    settings: "Settings",
    keys: dict[str, str],
    guard: str | None,
    as_json: bool,  # noqa: FBT001
) -> signal.Signals | None:
    from assay.cli.served import opened  # noqa: PLC0415
    from assay.runtime.http.app import make_app  # noqa: PLC0415
    from assay.runtime.http.inspector.routes import inspector_routes  # noqa: PLC0415
    from assay.runtime.http.service import open_service  # noqa: PLC0415
    from assay.runtime.http.serving import bind, listen  # noqa: PLC0415

    served = settings.serve
    with await bind(served) as listening:
        async with (
            opened(settings, guard=guard) as runtime,
            _working(runtime, served),
            open_service(runtime, model=served.model, keys=keys) as service,
        ):
            app = make_app(service, routes=inspector_routes(service))
            address = _address(listening)
            return await listen(
                app, service, listening, started=lambda: _tell(served, address, keys, as_json)
            )


def _working(
    runtime: "Runtime", settings: "ServeSettings"
) -> "AbstractAsyncContextManager[object]":
    """Work for the length of the block, where the service is one of those that do."""
    from assay.runtime.distributed.working import working  # noqa: PLC0415

    if runtime.jobs is None or not settings.work:
        return nullcontext()
    return working(
        runtime,
        kinds=("turn", "evaluation"),
        concurrency=settings.jobs,
        patience=settings.stop_seconds,
    )


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _tell(settings: "ServeSettings", address: str, keys: dict[str, str], as_json: bool) -> None:  # noqa: FBT001
    """What to know to call it; stdout may be read by a program that waits for it."""
    import json  # noqa: PLC0415

    from assay.runtime.nats.address import masked  # noqa: PLC0415
    from assay.stores.banks import shown  # noqa: PLC0415

    own = next((key for key, tenant in keys.items() if not tenant), "YOUR-KEY")
    if as_json:
        told = {"address": address, "model": settings.model, "bank": shown(bank_at(settings.bank))}
        if settings.bus:
            told["bus"] = masked(settings.bus)
        typer.echo(json.dumps({**told, "api_key": own}))
        return
    typer.echo(f"Assay serves {settings.model} at {address}/v1 (Ctrl-C stops it)")
    typer.echo(f"  bank       {shown(bank_at(settings.bank))}")
    if settings.bus:
        typer.echo(f"  bus        {masked(settings.bus)}")
    typer.echo(f"  inspector  {address}/inspect/")
    typer.echo(f"  health     {address}/health")
    typer.echo("Call it as you call OpenAI; memory is kept per user:")
    typer.echo(f"  export OPENAI_BASE_URL={address}/v1 OPENAI_API_KEY={own}")
    body = json.dumps(
        {
            "model": settings.model,
            "user": "ann",
            "messages": [{"role": "user", "content": "My cat is called Miso."}],
        }
    )
    typer.echo(f"  curl {address}/v1/chat/completions -H 'Authorization: Bearer {own}' \\")
    typer.echo(f"    -H 'Content-Type: application/json' -d '{body}'")
