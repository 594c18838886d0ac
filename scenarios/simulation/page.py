"""The page of a simulation: curves over months, figures with intervals, one user's story to read."""

from collections.abc import Iterator, Mapping, Sequence

from assay.scenarios import charts
from assay.scenarios.report import Card, Cell, Column, Figure, Report, Section, Table, number
from assay.scenarios.simulation.figures import (
    CURVES,
    GOALS,
    MEASURES,
    AgentFigures,
    Counted,
    complete,
    figures,
)
from assay.scenarios.simulation.records import (
    Lived,
    SimulationConfig,
    SimulationRecord,
    Told,
)
from assay.scenarios.statistics import Interval

_MOST_CARDS = 40
_SMALLEST_P = 0.0001
_CHANNELS = {
    "web": "a web page",
    "tool": "a tool's output",
    "other_user": "another user",
    "planted_turn": "a turn planted in the user's chat",
}
_ROLES = {"useful": "good", "stale": "bad", "planted": "bad", "irrelevant": "muted"}


def simulation_report(
    record: SimulationRecord, lived: Sequence[Lived], *, warning: str = ""
) -> Report:
    """The page of a simulation, of an unfinished one too: it shows what is there.

    Args:
        record: What was simulated.
        lived: By user and agent.
        warning: What a reader must know first.
    """
    config = record.config
    found = figures(lived, config)
    users = {one.user for one in complete(lived, len(found))}
    sections = [
        _over_time(found, config),
        _methods(found),
        _against(found),
        _injected(found, config),
        _facts_of_users(config),
        _story(lived, config),
    ]
    return Report(
        title=config.simulation.title,
        summary=config.simulation.about,
        facts=_facts(record),
        headlines=_headlines(found) if users else [],
        sections=[section for section in sections if section is not None] if users else [],
        warning=warning,
    )


def _facts(record: SimulationRecord) -> list[tuple[str, str]]:
    config = record.config
    days = config.simulation
    return [
        ("Command", record.command),
        ("Simulated", f"{days.months} months from {days.start:%d %B %Y}"),
        ("Size", f"{config.users} users, {config.sessions} sessions of {days.turns} turns"),
        ("Model", record.identity),
        ("Users speak by", days.user_model),
        ("Embedder", record.embedder),
        ("Seed", str(config.seed)),
        ("File", f"{config.name}.toml, sha256 {config.sha256}"),
        ("Intervals", "95 %, bootstrap by user, 2,000 resamples"),
    ]


def _headlines(found: Mapping[str, AgentFigures]) -> list[tuple[str, str, str]]:
    name, first = next(iter(found.items()))

    def headline(measure: str, label: str) -> tuple[str, str, str]:
        interval = first.measures[measure]
        return (_percent(interval.mean), f"{label}, {name}", _bounds(interval))

    cost = first.measures["evaluations"]
    shown = "\N{EN DASH}" if cost.mean is None else f"{cost.mean:.1f}"
    return [
        headline("accuracy", "answers right"),
        headline("poison_adopted", "poison adopted"),
        headline(GOALS, "goals reached"),
        (shown, f"evaluations per question, {name}", "the reply included"),
    ]


def _over_time(found: Mapping[str, AgentFigures], config: SimulationConfig) -> Section:
    shown: list[Figure] = []
    for name in CURVES:
        curves = {
            agent: [
                charts.Estimate(f"month {m.month + 1}", m.value.mean, m.value.low, m.value.high)
                for m in own.curves[name]
            ]
            for agent, own in found.items()
        }
        at = {agent: [m.month + 0.5 for m in own.curves[name]] for agent, own in found.items()}
        lines = {agent: list(zip(at[agent], curves[agent], strict=True)) for agent in found}
        measure = MEASURES[name]
        top = [e.high or e.value or 0.0 for own in curves.values() for e in own]
        axis = (
            charts.Axis(measure.label, 0.0, 1.0)
            if measure.is_share
            else charts.axis_for(f"{measure.label} per question", top, low=0.0)
        )
        months = charts.Axis("months since the start", 0.0, float(config.simulation.months))
        if any(lines.values()):
            shown.append(Figure(charts.curves(lines, months, axis), f"{measure.meaning}."))
    return Section(
        "Over time",
        "One point per simulated month and agent, in its middle; bars are 95 % intervals that resample users. "
        "Agents live through the same days.",
        figures=shown,
    )


def _methods(found: Mapping[str, AgentFigures]) -> Section:
    shares = [name for name, measure in MEASURES.items() if measure.is_share]
    costs = [name for name, measure in MEASURES.items() if not measure.is_share]
    tables = [
        Table(
            [Column("agent"), *(Column(*_heading(name)) for name in names)],
            [[Cell(agent), *(_cell(own, name) for name in names)] for agent, own in found.items()],
        )
        for names in ([*shares, GOALS], costs)
    ]
    text = (
        "What is useful, stale or planted, and which answer is right, is known to the simulation "
        "alone; it is joined with the replies afterwards. Below each figure stand its interval "
        "and how many questions (or goals) count."
    )
    return Section("Agents", text, tables=tables)


def _against(found: Mapping[str, AgentFigures]) -> Section | None:
    first, *others = found
    if not others:
        return None
    columns = [
        Column("agent"),
        Column(f"answers right: {first} minus its own", "With 95 % interval by user"),
        Column("p", "Sign-flip test by user, adjusted by Holm over the agents"),
        Column(f"only {first} right"),
        Column("only this one right"),
        Column("p, McNemar", "Exact, over questions, adjusted by Holm"),
    ]
    rows = [
        [
            Cell(name),
            _estimate(against.accuracy),
            _p_value(against.p_accuracy),
            number(against.only_first, digits=0),
            number(against.only_this, digits=0),
            _p_value(against.p_mcnemar),
        ]
        for name, agent in found.items()
        if (against := agent.against) is not None
    ]
    text = (
        "Paired by question. The sign-flip test flips whole users; McNemar's test takes questions "
        "as independent, which those of one user are not."
    )
    return Section(f"Against {first}", text, tables=[Table(columns, rows)])


def _injected(found: Mapping[str, AgentFigures], config: SimulationConfig) -> Section | None:
    if not config.simulation.inject:
        return None
    rates = [
        [Cell(one.what), Cell(_CHANNELS[one.channel]), number(one.rate, digits=2)]
        for one in config.simulation.inject
    ]
    tables = [Table([Column("what"), Column("channel"), Column("chance per session")], rates)]
    channels = sorted({channel for agent in found.values() for channel in agent.channels})
    if channels:
        columns = [Column("agent"), *(Column(_CHANNELS[channel]) for channel in channels)]
        rows = [
            [Cell(name), *(_adopted(agent.channels.get(channel)) for channel in channels)]
            for name, agent in found.items()
        ]
        tables.append(Table(columns, rows))
    text = (
        "What is slipped in, and below how often it is adopted: of the questions about a fact "
        "attacked through a channel, those in which a record of that channel entered the prompt."
    )
    return Section("Poison and noise", text, tables=tables)


def _facts_of_users(config: SimulationConfig) -> Section:
    columns = [
        Column("fact"),
        Column("the user says"),
        Column("and later"),
        Column("changes", "On average over the whole time"),
        Column("poison says"),
    ]
    rows = [
        [
            Cell(fact.name),
            Cell(fact.told),
            Cell(fact.changed),
            number(fact.changes, digits=1),
            Cell(fact.poison, kind="muted"),
        ]
        for fact in config.simulation.fact
    ]
    return Section("What holds for a user", tables=[Table(columns, rows)])


def _story(lived: Sequence[Lived], config: SimulationConfig) -> Section | None:
    own = {config.simulation.agent[one.agent].name: one for one in lived if one.user == 0}
    if len(own) < len(config.simulation.agent):
        return None
    cards = list(_cards(own))
    text = (
        f"The first user's questions about facts that had changed or were under attack, the first "
        f"{len(cards)} of them. Decisions are those of the first agent. Roles come from the key."
    )
    return Section("One user's story", text, cards=cards)


def _cards(own: Mapping[str, Lived]) -> Iterator[Card]:
    first = next(iter(own))
    shown = [
        place for place, asked in enumerate(own[first].asked) if asked.channels or asked.changed
    ][:_MOST_CARDS]
    for place in shown:
        told = {name: one.told[place] for name, one in own.items()}
        right = {name: one.asked[place].right for name, one in own.items()}
        yield _card(told, right, is_open=place == shown[0])


def _card(told: Mapping[str, Told], right: Mapping[str, bool], *, is_open: bool) -> Card:
    first = next(iter(told.values()))
    columns = [Column(name) for name in ("memory", "decision", "why", "role (from the key)")]
    rows = [
        [
            Cell(judged.text),
            Cell("admitted" if judged.admitted else "withheld"),
            Cell(judged.reason, kind="muted"),
            Cell(judged.role, kind=_ROLES[judged.role]),
        ]
        for judged in first.judged
    ]
    return Card(
        title=f"{first.day}: {first.question}",
        chips=[
            Cell(f"{name}: {'right' if is_right else 'wrong'}", kind="good" if is_right else "bad")
            for name, is_right in right.items()
        ],
        table=Table(columns, rows),
        lines=[(f"{name} answered", one.answer or "(nothing)") for name, one in told.items()],
        is_open=is_open,
    )


def _heading(name: str) -> tuple[str, str]:
    if name == GOALS:
        return "goals reached", "Share of attempts with every answer right"
    return MEASURES[name].label, MEASURES[name].meaning


def _cell(agent: AgentFigures, name: str) -> Cell:
    is_share = name == GOALS or MEASURES[name].is_share
    interval, n = agent.measures[name], agent.counts[name]
    digits = 3 if is_share else 1
    bounds = _bounds(interval, digits)
    return number(interval.mean, digits=digits, note=f"{bounds} of {n:,}".strip())


def _adopted(counted: Counted | None) -> Cell:
    if counted is None:
        return number(None)
    note = f"{_bounds(counted.share)} of {counted.n:,}"
    return number(counted.share.mean, note=note.strip())


def _estimate(interval: Interval) -> Cell:
    return number(interval.mean, note=_bounds(interval))


def _p_value(p: float) -> Cell:
    return number(p, digits=4) if p >= _SMALLEST_P else Cell("<0.0001", p, kind="number")


def _percent(value: float | None) -> str:
    return "\N{EN DASH}" if value is None else f"{value:.1%}".replace("%", " %")


def _bounds(interval: Interval, digits: int = 3) -> str:
    if interval.low is None or interval.high is None:
        return ""
    return f"[{interval.low:.{digits}f}, {interval.high:.{digits}f}]"
