"""What each perturbation changes in the texts of the recorded candidates. Prints a table of counts.

    python benchmarks/perturbations.py ../shared/data/causal_locomo.jsonl ../shared/data/cmi_diagnostics.csv

Only counts are printed; the texts are not ours to copy.
"""

import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

import msgspec

from assay.guards.perturb import EDITORS, PERTURBATIONS, PUBLISHED, perturbation_for
from assay.guards.perturb_edits import applied, cuts_a_word
from assay.scenarios.causal_locomo import strip_answer
from assay.scenarios.loader import read_jsonl
from assay.scenarios.published_cmi import read_diagnostics
from assay.stores.records import RecordId

SEED = 7
HEAD = (
    "perturbation",
    "texts changed",
    "edits",
    "words gone",
    "words added",
    "share of words",
    "cuts a word",
)
WORD = re.compile(r"\w+(?:['\u2019]\w+)*")


class Memory(msgspec.Struct, frozen=True):
    """One memory of an example."""

    memory_id: RecordId
    content: str


class Bank(msgspec.Struct, frozen=True):
    """The memories of one example."""

    example_id: str
    memory_bank: tuple[Memory, ...]


def recorded_texts(data: Path, diagnostics: Path) -> list[str]:
    """The texts of the recorded candidates, without the suffix that resolves the answer."""
    texts = {
        (row.example_id, memory.memory_id): strip_answer(memory.content)
        for _, row in read_jsonl(data, Bank)
        for memory in row.memory_bank
    }
    return [
        texts[example, row.memory_id]
        for example, rows in read_diagnostics(diagnostics).items()
        for row in rows
    ]


def row_of(name: str, texts: Sequence[str]) -> list[str]:
    """The counts of one perturbation."""
    changed = [text for text in texts if PERTURBATIONS[name](text) != text]
    gone, added = zip(
        *(differing(text, PERTURBATIONS[name](text)) for text in changed), strict=True
    )
    shares = [g / len(WORD.findall(t)) for g, t in zip(gone, changed, strict=True)]
    edits = [(text, EDITORS[name](text)) for text in changed] if name in EDITORS else []
    if any(applied(text, own) != PERTURBATIONS[name](text) for text, own in edits):
        raise AssertionError(f"the edits of {name} are not what it does")
    cuts = sum(cuts_a_word(text, edit) for text, own in edits for edit in own)
    return [
        name,
        str(len(changed)),
        str(sum(len(own) for _, own in edits)) if edits else "-",
        f"{fmean(gone):.2f}",
        f"{fmean(added):.2f}",
        f"{fmean(shares):.3f}",
        str(cuts) if edits else "-",
    ]


def differing(before: str, after: str) -> tuple[int, int]:
    """How many words one text has that the other lacks, either way."""
    first, second = Counter(WORD.findall(before)), Counter(WORD.findall(after))
    return (first - second).total(), (second - first).total()


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A Markdown table."""
    for row in (head, ["---", *("---:" for _ in head[1:])], *rows):
        print(f"| {' | '.join(row)} |")


def drawn(texts: Sequence[str]) -> Mapping[str, int]:
    """How often each perturbation is the one CMI shows."""
    return Counter(perturbation_for(text, seed=SEED) for text in texts)


def main(data: str, diagnostics: str) -> None:
    """Print the page."""
    texts = recorded_texts(Path(data), Path(diagnostics))
    print("# What the perturbations change\n")
    print(
        f"Made by `python benchmarks/perturbations.py {data} {diagnostics}` over the texts of the"
    )
    print(
        f"{len(texts)} recorded candidates, {len(set(texts))} of them different. Words are counted per"
    )
    print(
        "changed text: `gone` are those only the text has, `added` those only its perturbation has."
    )
    print(
        "`share of words` is the share of the text's words that are gone; `cuts a word` counts edits"
    )
    print("that begin or end inside a word. No text is shown.\n")
    print("## On the text's own statements\n")
    print_table(HEAD, [row_of(name, texts) for name in EDITORS])
    print("\n## As published\n")
    print_table(HEAD, [row_of(name, texts) for name in PUBLISHED])
    print(f"\n## Drawn for the one perturbation CMI shows (seed {SEED})\n")
    counts = drawn(texts)
    print_table(("perturbation", "texts"), [[name, str(counts[name])] for name in EDITORS])


if __name__ == "__main__":
    main(*sys.argv[1:])
