"""The report as one page of HTML, self-contained, for light and dark, made from records alone.

Plans, if there are any, are drawn as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from dsa.bench.charts import Axis, Look, Point, Series, chart, sample
from dsa.bench.peers import PEERS
from dsa.bench.records import STATUSES, Record
from dsa.bench.report import Group, duels, grouped, losses, origin
from dsa.draw import svg
from dsa.result import Plan

__all__ = ["page"]

STYLE = Path(__file__).with_name("page.css")
NEAR = 1.01  # times the bound: near enough for most
GAPS = Axis(
    "peak above the bound",
    1e-4,
    1.0,
    [(1e-4, "0"), (1e-3, "0.1 %"), (1e-2, "1 %"), (1e-1, "10 %"), (1.0, "100 %")],
    log=True,
)


def page(records: Sequence[Record], plans: Mapping[str, Plan] | None = None) -> str:
    """The page.

    Parameters
    ----------
    records
        Of any number of runs.
    plans
        By what is said of them.
    """
    groups = grouped(records)
    looks = _looks(groups)
    body = [
        *_head(records, groups),
        *_summary(groups, looks),
        *_charts(groups, looks),
        *_losses(groups, looks),
        *_table(groups, looks),
        *_pictures(plans or {}),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<title>dsa bench</title>\n<style>\n"
        + STYLE.read_text("utf-8")
        + "</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(body)
        + "\n</main>\n</body>\n</html>\n"
    )


def _looks(groups: Sequence[Group]) -> dict[str, Look]:
    """Ours and peers are numbered apart, so that a colour stands for one of each at most."""
    names = list(dict.fromkeys(group.solver for group in groups))
    looks: dict[str, Look] = {}
    for peer in (False, True):
        chosen = [name for name in names if is_peer(name) == peer]
        looks |= {name: Look(name, i % 8, peer) for i, name in enumerate(chosen)}
    return looks


def is_peer(name: str) -> bool:
    """Whether a solver is not ours."""
    return name.partition(":")[0] in PEERS


# -- sections -----------------------------------------------------------------------------------


def _head(records: Sequence[Record], groups: Sequence[Group]) -> Iterator[str]:
    instances = {group.instance for group in groups}
    solvers = {group.solver for group in groups}
    yield "<h1>Memory planners on the same inputs</h1>"
    yield (
        f"<p>{len(solvers)} solvers on {len(instances)} instances, {len(records)} runs, each in a "
        "process of its own. Every plan was checked by one validator that shares no code with any "
        "of them. The <em>bound</em> is the largest number that is proven no plan can be below; "
        "the <em>gap</em> is how far a peak lies above it.</p>"
    )
    yield f'<p class="note">{escape(origin(records))}</p>'


def _summary(groups: Sequence[Group], looks: Mapping[str, Look]) -> Iterator[str]:
    """One row a solver."""
    yield "<h2>In short</h2>"
    head = [
        "solver",
        "at the bound",
        "within 1 %",
        "no plan",
        "mean gap",
        "worst gap",
        "median cpu s",
    ]
    duel = duels(groups)
    if duel:
        head.append("auto lower / same / higher")
    rows = []
    for name, look in looks.items():
        mine = [group for group in groups if group.solver == name]
        gaps = [group.ratio - 1 for group in mine if group.planned]
        share = len(mine) / 100
        rows.append(
            f'<tr><th scope="row">{sample(look)}</th>'
            f"<td>{sum(gap == 0 for gap in gaps) / share:.0f} %</td>"
            f"<td>{sum(gap < NEAR - 1 for gap in gaps) / share:.0f} %</td>"
            f"<td>{len(mine) - len(gaps) or ''}</td>"
            f"<td>{_per_cent(sum(gaps) / len(gaps)) if gaps else ''}</td>"
            f"<td>{_per_cent(max(gaps)) if gaps else ''}</td>"
            f"<td>{_seconds(_median(group.cpu for group in mine if group.planned))}</td>"
            + (f"<td>{' / '.join(map(str, duel[name]))}</td></tr>" if duel else "</tr>")
        )
    yield _scrolling(head, rows)
    yield (
        '<p class="note">Gaps are of the plans that there are; <em>no plan</em> counts what was '
        "refused, ended without one or was no valid one. Seconds are cpu time of all threads, for "
        "other programs may use the machine, too. The last column compares the peak of "
        "<em>auto</em> with the solver's, where both have a plan. Dashed: not ours.</p>"
    )


def _charts(groups: Sequence[Group], looks: Mapping[str, Look]) -> Iterator[str]:
    yield "<h2>Quality and time</h2>"
    names = "".join(f"<li>{sample(look)}</li>" for look in looks.values())
    yield f'<ul class="legend">{names}</ul>'
    yield '<div class="charts">'
    yield _figure(
        "How often a solver comes how near to the bound. Higher is better; at the left edge stands "
        "the share of instances that is planned at the bound.",
        _profile(groups, looks),
    )
    yield _figure(
        "Within 1 % of the bound after so many cpu seconds. Higher is better. A solver that "
        "reports no progress counts when it ends.",
        _anytime(groups, looks),
    )
    yield _figure(
        "Time against quality. Median cpu seconds of a run, and the share of instances planned at "
        "the bound; better is up and to the left. Squares: not ours.",
        _tradeoff(groups, looks),
    )
    for family, drawn in _growth(groups, looks):
        yield _figure(f"Cpu seconds by number of buffers: {family}", drawn)
    for instance, drawn in _hard(groups, looks):
        yield _figure(f"How the peak fell: {instance}", drawn)
    yield "</div>"


def _profile(groups: Sequence[Group], looks: Mapping[str, Look]) -> str:
    series = []
    for name, mine in _by_solver(groups):
        gaps = sorted(group.ratio - 1 for group in mine if group.planned)
        points = [(0.0, 0.0), *((gap, (k + 1) / len(mine)) for k, gap in enumerate(gaps))]
        series.append(Series(looks[name], [*points, (1.0, len(gaps) / len(mine))], "stairs"))
    return chart("Performance profile", GAPS, Axis.shares("instances"), series)


def _anytime(groups: Sequence[Group], looks: Mapping[str, Look]) -> str:
    series, seconds = [], []
    for name, mine in _by_solver(groups):
        reached = sorted(time for group in mine if (time := _time_to(group, NEAR)) < math.inf)
        seconds += reached
        series.append((name, reached, len(mine)))
    axis = Axis.decades("cpu seconds", seconds, 1e-3)
    lines = [
        Series(
            looks[name],
            [
                (axis.low, 0.0),
                *((time, (k + 1) / of) for k, time in enumerate(reached)),
                (axis.high, len(reached) / of),
            ],
            "stairs",
        )
        for name, reached, of in series
    ]
    return chart("Anytime", axis, Axis.shares("instances"), lines)


def _time_to(group: Group, ratio: float) -> float:
    """Seconds until a run of the group was this near to the bound."""
    record = group.records[0]
    goal = ratio * record.bound
    return next((s for s, peak in record.paced if peak <= goal and record.planned), math.inf)


def _tradeoff(groups: Sequence[Group], looks: Mapping[str, Look]) -> str:
    points = {}
    for name, mine in _by_solver(groups):
        if any(group.planned for group in mine):
            seconds = _median(group.cpu for group in mine if group.planned)
            points[name] = (seconds, sum(group.ratio == 1 for group in mine) / len(mine))
    axis = Axis.decades("cpu seconds", [seconds for seconds, _ in points.values()], 1e-4)
    dots = [Series(looks[name], [point], "none") for name, point in points.items()]
    return chart("Time against quality", axis, Axis.shares("at the bound"), dots)


def _growth(groups: Sequence[Group], looks: Mapping[str, Look]) -> Iterator[tuple[str, str]]:
    """A chart for each family of which there are three sizes."""
    families: dict[str, list[Group]] = {}
    for group in groups:
        family, colon, _ = group.instance.partition(":")
        if colon and group.planned:
            families.setdefault(family, []).append(group)
    for family, mine in families.items():
        sizes = sorted({group.records[0].buffers for group in mine})
        if len(sizes) < 3:
            continue
        lines = []
        for name, some in _by_solver(mine):
            lines.append(Series(looks[name], sorted(_medians(some))))
        seconds = [y for line in lines for _, y in line.points]
        x, y = Axis.decades("buffers", sizes, 1), Axis.decades("cpu seconds", seconds, 1e-4)
        yield family, chart(f"Growth: {family}", x, y, lines)


def _medians(groups: Iterable[Group]) -> Iterator[Point]:
    by_size: dict[int, list[float]] = {}
    for group in groups:
        by_size.setdefault(group.records[0].buffers, []).append(group.cpu)
    return ((size, _median(walls)) for size, walls in by_size.items())


def _hard(groups: Sequence[Group], looks: Mapping[str, Look]) -> Iterator[tuple[str, str]]:
    """Charts of the four instances on which the peak of some solver of ours fell furthest."""
    falls: dict[str, float] = {}
    for group in groups:
        record = group.records[0]
        if group.planned and len(record.curve) > 2:
            (_, first), (_, last) = record.curve[0], record.curve[-1]
            fall = (min(first, 2 * record.bound) - last) / record.bound  # as far as it is drawn
            falls[group.instance] = max(falls.get(group.instance, 0.0), fall)
    for instance in sorted(falls, key=lambda name: -falls[name])[:4]:
        mine = [group for group in groups if group.instance == instance and group.planned]
        seconds = [s for group in mine for s, _ in group.records[0].paced]
        axis = Axis.decades("cpu seconds", seconds, 1e-3)
        series = []
        for group in mine:
            record = group.records[0]
            points = [(s, peak / record.bound - 1) for s, peak in record.paced]
            points = [(s, gap) for s, gap in points if gap <= 1] or points[-1:]
            join = "stairs" if len(points) > 1 else "none"
            series.append(Series(looks[group.solver], points, join))
        yield instance, chart(f"Anytime: {instance}", axis, GAPS, series)


def _losses(groups: Sequence[Group], looks: Mapping[str, Look]) -> Iterator[str]:
    """Where a peer is better, as `losses` finds it."""
    found = losses(groups, is_peer)
    yield "<h2>Where a peer is better</h2>"
    if not found:
        yield "<p>Nowhere: no peer has a lower peak, or the same peak much sooner.</p>"
        return
    rows = [
        f'<tr><th scope="row">{escape(loss.instance)}</th>'
        f"<td>{escape(looks[loss.peer].label)}</td>"
        f"<td>{_per_cent(loss.peer_gap)}</td><td>{_seconds(loss.peer_seconds)}</td>"
        f"<td>{escape(looks[loss.ours].label)}</td><td>{_per_cent(loss.our_gap)}</td>"
        f"<td>{_seconds(loss.our_seconds)}</td></tr>"
        for loss in found
    ]
    head = ["instance", "peer", "its gap", "its cpu s", "ours", "our gap", "our cpu s"]
    yield _scrolling(head, rows)
    yield (
        '<p class="note">A lower peak than that of <em>auto</em>, which is what one gets without '
        "asking; or the same peak in less than half its cpu time, and in more than 0.1 s less.</p>"
    )


def _table(groups: Sequence[Group], looks: Mapping[str, Look]) -> Iterator[str]:
    """Every instance and every solver."""
    yield "<h2>Every instance</h2>"
    cells = {(group.instance, group.solver): group for group in groups}
    rows = []
    for instance in dict.fromkeys(group.instance for group in groups):
        record = next(group.records[0] for group in groups if group.instance == instance)
        row = f'<th scope="row">{escape(instance)}</th><td>{record.buffers:,}</td>'
        rows.append(
            f"<tr>{row}{''.join(_cell(cells.get((instance, name))) for name in looks)}</tr>"
        )
    labels = [look.label for look in looks.values()]
    yield _scrolling(["instance", "buffers", *labels], rows, "heat")
    meanings = "; ".join(f"<em>{word}</em>: {text}" for word, text in STATUSES.items())
    yield (
        '<p class="note">Peak above the bound. Green: at it; the redder, the further above. '
        f"{meanings}.</p>"
    )


def _cell(group: Group | None) -> str:
    if group is None:
        return "<td></td>"
    hover = f"{group.records[0].solver}: {_seconds(group.cpu)} s. {group.records[0].message[:200]}"
    if not group.planned:
        return f'<td class="none" title="{escape(hover)}">{group.status}</td>'
    gap = group.ratio - 1
    heat = 0 if gap == 0 else 1 + min(max(int(math.log10(gap) + 4), 0), 4)
    return f'<td class="h{heat}" title="{escape(hover)}">{_per_cent(gap)}</td>'


def _pictures(plans: Mapping[str, Plan]) -> Iterator[str]:
    if not plans:
        return
    yield "<h2>Best and worst plans</h2>"
    yield '<div class="charts">'
    for words, plan in plans.items():
        yield _figure(words, svg(plan, width=640, height=400))
    yield "</div>"


# -- pieces -------------------------------------------------------------------------------------


def _by_solver(groups: Iterable[Group]) -> Iterator[tuple[str, list[Group]]]:
    by_solver: dict[str, list[Group]] = {}
    for group in groups:
        by_solver.setdefault(group.solver, []).append(group)
    yield from by_solver.items()


def _median(values: Iterable[float]) -> float:
    listed = sorted(values)
    return listed[len(listed) // 2] if listed else math.nan


def _per_cent(gap: float) -> str:
    if gap == 0:
        return "0"
    if gap < 1e-5:
        return "&lt; 0.001 %"
    if gap >= 10:
        return f"x {1 + gap:.0f}"
    return f"{100 * gap:.2g} %" if gap < 0.1 else f"{100 * gap:.0f} %"


def _seconds(seconds: float) -> str:
    return "" if math.isnan(seconds) else f"{seconds:.3f}" if seconds < 1 else f"{seconds:.1f}"


def _figure(words: str, drawn: str) -> str:
    title, _, rest = words.partition(". ")
    caption = f"<figcaption>{escape(rest)}</figcaption>" if rest else ""
    return f"<figure><h3>{escape(title)}</h3>{drawn}{caption}</figure>"


def _scrolling(head: Sequence[str], rows: Sequence[str], kind: str = "") -> str:
    cells = "".join(f'<th scope="col"><span>{escape(word)}</span></th>' for word in head)
    return (
        f'<div class="scroll"><table class="{kind}"><thead><tr>{cells}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )
