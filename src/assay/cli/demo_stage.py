"""Plays the shipped rollout twice and tells what happens on the way."""

import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from assay.guards.methods import guard_named
from assay.guards.protocols import ChatModel, Guard, Judgement
from assay.runtime.clock import SystemClock
from assay.runtime.models.opening import open_model
from assay.runtime.paths import data_folder
from assay.runtime.settings import Settings
from assay.scenarios.playing import Moment, Played, play
from assay.scenarios.report import write
from assay.scenarios.rollout_report import Tally, rollout_report, tally
from assay.scenarios.rollouts import Rollout, shipped
from assay.stores.embeddings import open_embedder
from assay.stores.protocols import Embedder

ANSWER_TOKENS = 24
"""Most tokens of an answer: a sentence, so that the demo ends within minutes on two cores."""

NO_GUARD = "full_history"
"""Lets in every record that was retrieved: what an agent without a guard does."""

_STYLES = {"useful": "green", "stale": "yellow", "planted": "red"}


class Choice(NamedTuple):
    """What the user chose on the command line."""

    out: Path | None
    model: str
    base_url: str | None
    guard: str
    embedder: str
    seed: int

    @property
    def command(self) -> str:
        """The command that does it again."""
        words = ["assay", "demo", "--model", self.model, "--guard", self.guard]
        words += ["--embedder", self.embedder, "--seed", str(self.seed)]
        words += ["--base-url", self.base_url] if self.base_url else []
        return shlex.join(words + (["--out", str(self.out)] if self.out else []))


async def run_demo(choice: Choice) -> None:
    """Play, print, write the report, say what to try next."""
    settings = _settings()
    embedder = open_embedder(choice.embedder)
    guard = guard_named(choice.guard, seed=choice.seed, embedder=embedder)
    bare = guard_named(NO_GUARD, seed=choice.seed)
    folder = _free(choice.out or data_folder() / "demo")
    rollout, console = shipped(), Console(highlight=False)
    async with open_model(choice.model, settings=settings, base_url=choice.base_url) as model:
        facts = [
            ("Command", choice.command),
            ("Model", model.identity),
            ("Embedder", embedder.name),
            ("Seed", str(choice.seed)),
            ("Played", SystemClock().now().isoformat(timespec="seconds")),
        ]
        _headline(console, rollout, facts)
        stage = _Stage(console, rollout, model, embedder, settings, choice.seed)
        guarded = await stage.play(guard, folder / "bank", "with the guard", aloud=True)
        plain = await stage.play(bare, folder / "bank-no-guard", "again, no guard", aloud=False)
    page = rollout_report(rollout.title, guarded, plain, guard=guard.name, facts=facts)
    write(page, folder / "report.html")
    console.print(_closing({guard.name: tally(guarded), "no guard": tally(plain)}))
    _farewell(console, folder, rollout)


class _Stage(NamedTuple):
    """What both ways of playing share."""

    console: Console
    rollout: Rollout
    model: ChatModel
    embedder: Embedder
    settings: Settings
    seed: int

    async def play(self, guard: Guard, bank: Path, label: str, *, aloud: bool) -> list[Played]:
        """Play the rollout; ``aloud`` prints every decision above the progress bar."""
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(
            *columns, TimeElapsedColumn(), console=self.console, transient=True
        ) as progress:
            bar = progress.add_task(label, total=None)

            def watch(moment: Moment) -> None:
                progress.update(bar, completed=moment.done, total=moment.total)
                if aloud and moment.played is not None:
                    self.console.print(_told(moment.played), soft_wrap=True)

            return await play(
                self.rollout,
                model=self.model,
                embedder=self.embedder,
                guard=guard,
                bank=bank,
                settings=self.settings,
                seed=self.seed,
                wall=SystemClock(),
                watch=watch,
            )


def _settings() -> Settings:
    """The user's settings with answers short enough for a demo."""
    settings = Settings.load()
    replace = msgspec.structs.replace
    return replace(
        settings,
        prompt=replace(settings.prompt, answer_tokens=ANSWER_TOKENS, recent_tokens=128),
        guard=replace(settings.guard, answer_tokens=ANSWER_TOKENS, seconds=300.0),
        turn=replace(settings.turn, seconds=600.0),
    )


def _free(folder: Path) -> Path:
    """The folder, or the first numbered one beside it that holds no demo yet."""
    tried, number = folder, 1
    while (tried / "bank").exists():
        number += 1
        tried = folder.with_name(f"{folder.name}-{number}")
    return tried


def _headline(console: Console, rollout: Rollout, facts: list[tuple[str, str]]) -> None:
    console.print(Text(rollout.title, style="bold"))
    console.print(
        Text(
            f"{len(rollout.session)} sessions, {len(rollout.questions)} questions. Brackets tell "
            "what a memory is; that is the key, and the guard never sees it.\n"
            + "   ".join(f"{name.lower()} {value}" for name, value in facts[1:4]),
            style="dim",
        ),
        soft_wrap=True,
    )


def _told(played: Played) -> Text:
    """One decision as people like to read it."""
    text = Text(f"\n{played.at:%d %b}  ", style="dim")
    text.append(f"{played.question.text}\n", style="bold not dim")
    others = 0
    for judgement in sorted(played.decision.judgements, key=lambda j: not j.admitted):
        if not judgement.admitted and played.role(judgement.record_id) == "irrelevant":
            others += 1
        else:
            text.append(_line(played, judgement))
    if others:
        text.append(f"  - withheld  {others} others that do not help\n", style="dim")
    return text.append(_answer(played))


def _line(played: Played, judgement: Judgement) -> Text:
    role = played.role(judgement.record_id)
    line = Text("  + admitted  " if judgement.admitted else "  - withheld  ", style="not dim")
    line.append(played.texts[judgement.record_id])
    line.append(f"  [{role}]\n", style=_STYLES.get(role, "dim"))
    effect = "" if judgement.effect is None else f" (effect {judgement.effect:+.2f})"
    return line.append(f"              {judgement.reason}{effect}\n", style="dim")


def _answer(played: Played) -> Text:
    verdict = {True: ("right", "green"), False: ("wrong", "red"), None: ("not scored", "dim")}
    word, style = verdict[played.right]
    line = Text("  = ", style="not dim").append(" ".join(played.answer.split()))
    line.append(f"  [{word}]\n", style=style)
    spent = played.ledger
    return line.append(
        f"    {spent.evaluations} evaluations, {spent.cache_hits} of them cached, "
        f"{spent.rounds} rounds, {spent.tokens:,} tokens, {played.seconds:.1f} s",
        style="dim",
    )


def _closing(ways: dict[str, Tally]) -> Table:
    table = Table(title="\nThe same weeks, with and without", title_justify="left")
    table.add_column("")
    for name in ways:
        table.add_column(name, justify="right")
    rows: dict[str, Callable[[Tally], str]] = {
        "answers right": lambda t: f"{t.right} of {t.scored}",
        "useful memory admitted": lambda t: _of(t.useful),
        "stale memory adopted": lambda t: _of(t.stale),
        "planted memory adopted": lambda t: _of(t.planted),
        "evaluations": lambda t: f"{t.ledger.evaluations:,}",
        "cache hits": lambda t: f"{t.ledger.cache_hits:,}",
        "live calls": lambda t: f"{t.ledger.live:,}",
        "rounds": lambda t: f"{t.ledger.rounds:,}",
        "tokens": lambda t: f"{t.ledger.tokens:,}",
        "seconds": lambda t: f"{t.seconds:.1f}",
    }
    for name, shown in rows.items():
        table.add_row(name, *(shown(way) for way in ways.values()))
    return table


def _of(pair: tuple[int, int]) -> str:
    return f"{pair[0]} of {pair[1]}"


def _farewell(console: Console, folder: Path, rollout: Rollout) -> None:
    assay, report = _command(), (folder / "report.html").absolute()
    lines = [
        ("report", str(report)),
        ("bank", str(folder / "bank")),
        ("talk to it", f"{assay} chat --bank {shlex.quote(str(folder / 'bank'))}"),
        ("a first test", f"{assay} scenario new first.toml && {assay} scenario run first.toml"),
        ("a benchmark", f"{assay} replay families --size 8 --model scripted --method panel"),
        ("this machine", f"{assay} doctor"),
        ("all commands", f"{assay} --help"),
    ]
    console.print(f"\n{rollout.title}: done. What to look at and try next:", style="bold")
    for name, value in lines:
        # A terminal that knows links opens the report by a click; others show its path.
        style = f"link {report.as_uri()}" if name == "report" else ""
        console.print(
            Text(f"  {name:<14}").append(value, style=style), soft_wrap=True, markup=False
        )


def _command() -> str:
    """How this program is called here: a newcomer's environment is not on the path yet."""
    if shutil.which("assay"):
        return "assay"
    here = Path(sys.executable).with_name("assay")
    return shlex.quote(
        str(here.relative_to(Path.cwd()) if here.is_relative_to(Path.cwd()) else here)
    )
