"""A chatbot that embeds Assay: no download, no network; give a real ``model=`` to go further."""

import anyio

import assay


async def main() -> None:
    """Tell something, ask about it, and see what the answer stood on."""
    async with assay.open_runtime(model=assay.ScriptedModel(), embedder="hashing") as runtime:
        await runtime.session(user="u1").send("My cat is called Miso.")
        reply = await runtime.session(user="u1").send("What is my cat called?")
        print(reply.text)
        for judgement in reply.decision.judgements:
            print("admitted" if judgement.admitted else "withheld", "-", judgement.reason)


anyio.run(main)
