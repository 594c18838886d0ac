"""The runtime that a user's own test opens."""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from assay.runtime.clock import StoppedClock
from assay.runtime.facade import Runtime
from assay.runtime.settings import Settings
from assay.runtime.wiring import open_runtime
from assay.scenarios.cases.files import CASSETTE_SUFFIX
from assay.scenarios.cases.recording import Asked, recorded_model

_NOT_IN_A_NAME = re.compile(r"[^\w.-]+")


@asynccontextmanager
async def runtime_for(
    *, test: Path, name: str, record: bool, options: Mapping[str, object]
) -> AsyncGenerator[Runtime]:
    """A runtime in memory, with the scripted model and a stopped clock unless told otherwise.

    Args:
        test: The test's file.
        name: The test's name.
        record: Ask a model given by name and record its answers.
        options: As ``open_runtime`` takes them.

    Raises:
        ScenarioError: If there is no cassette for a model given by name, or it is unusable.
    """
    chosen = {"model": "scripted", "embedder": "hashing", "clock": StoppedClock(), **options}
    async with AsyncExitStack() as stack:
        model, settings = chosen["model"], chosen.get("settings")
        if isinstance(model, str):
            base_url = chosen.pop("base_url", None)
            asked = Asked(
                model=model,
                settings=settings if isinstance(settings, Settings) else Settings(),
                base_url=base_url if isinstance(base_url, str) else None,
                folder=test.parent,
                cassette=test.with_name(
                    f"{test.stem}.{_NOT_IN_A_NAME.sub('-', name)}{CASSETTE_SUFFIX}"
                ),
                how=f"pytest {test.name} -k {name} --assay-record",
            )
            chosen["model"] = await stack.enter_async_context(recorded_model(asked, record=record))
        # The options are those of a function: what does not fit it is its TypeError, as in a call.
        yield await stack.enter_async_context(open_runtime(**chosen))  # type: ignore[arg-type]
