"""A process that records answers to a cassette until it is killed: ``recording.py FILE``."""

import sys
from pathlib import Path

import anyio
import msgspec

from assay.guards.keys import Question, encode_question
from assay.guards.protocols import Completion, Message, Parameters, Request
from assay.runtime.models.cassette import RecordingCache
from assay.stores.memory import InMemoryCache
from assay.stores.protocols import CacheRow
from assay.stores.records import Namespace


async def record(path: Path) -> None:
    recorder = RecordingCache(InMemoryCache(), path)
    number = 0
    while True:
        request = Request(
            model="m",
            messages=(Message(role="user", content=f"{number} {'x' * 20_000}"),),
            parameters=Parameters(),
        )
        value = msgspec.json.encode(Completion(text=f"answer {number}"))
        row = CacheRow(str(number), value, encode_question(Question(request=request)), ())
        await recorder.put(Namespace("ns"), [row])
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        number += 1


if __name__ == "__main__":
    anyio.run(record, Path(sys.argv[1]))
