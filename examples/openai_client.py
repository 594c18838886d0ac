"""The openai SDK, unchanged, in front of guarded memory. Run: ``python examples/openai_client.py``.

``assay serve`` does the same from the command line; here the service runs inside the example.
"""

import anyio
import openai

import assay
from assay.runtime.http.app import make_app
from assay.runtime.http.service import open_service
from assay.runtime.http.serving import bind, listen
from assay.runtime.settings import ServeSettings

KEY = "sk-example-key"


async def talk(base_url: str) -> None:
    """Two conversations of one user; the second knows what the first one said."""
    async with openai.AsyncOpenAI(base_url=base_url, api_key=KEY) as client:
        for text in ("My cat is called Miso.", "What is my cat called?"):
            answer = await client.chat.completions.create(
                model="scripted", user="ann", messages=[{"role": "user", "content": text}]
            )
            print(answer.choices[0].message.content)
            print((answer.model_extra or {})["assay"]["admitted"])


async def main() -> None:
    """Serve, talk, stop."""
    settings = ServeSettings(port=0)
    started, stop = anyio.Event(), anyio.Event()
    async with (
        assay.open_runtime(model="scripted", embedder="hashing") as runtime,
        open_service(runtime, model="scripted", keys={KEY: ""}) as service,
    ):
        with await bind(settings) as listening:
            port = listening.getsockname()[1]

            async def serve() -> None:
                await listen(make_app(service), service, listening, started=started.set, stop=stop)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(serve)
                await started.wait()
                await talk(f"http://127.0.0.1:{port}/v1")
                stop.set()


if __name__ == "__main__":
    anyio.run(main)
