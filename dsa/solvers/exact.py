"""Skyline branch and bound: finds the optimum and proves it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, ClassVar

import numpy as np

from dsa.bounds import Reachable, lower_bound
from dsa.budget import Budget, check_seconds
from dsa.kernels import compiled
from dsa.kernels.repair import HELPERS as REPAIR_HELPERS
from dsa.kernels.repair import MOST, Repair, repair
from dsa.kernels.search import FOUND, HITS, INFINITY, PAUSED, RECORDED, REFUTED, search
from dsa.kernels.searcher import HELPERS, Searcher
from dsa.problem import IntArray, Problem
from dsa.proof import Proof
from dsa.result import Solution, peak
from dsa.solvers import ALL, Solver, check_counts
from dsa.solvers.cores import cores
from dsa.solvers.disjunctive import HIGHEST, LARGEST, PairSearch, minimise
from dsa.solvers.orders import ORDERS, check_order, sort_by
from dsa.solvers.starts import count_pairs
from dsa.solvers.strip_packing import StripPacking, fill_mixtures

__all__ = ["Exact", "Minimiser"]

RULES = {"fewest": 0, "few": 1, "fewest-tight": 2, "lowest": 3, "tightest": 4}


@dataclass(frozen=True)
class Exact(Solver):
    """Search for a plan at the lower bound; where there is none, prove it and raise the bound.

    `dsa.kernels.search` describes the search for a plan within a capacity. It is started again
    and again with other rules and orders, mostly for few nodes, sometimes for many (after Luby,
    Sinclair and Zuckerman 1993), a third of the time at the lower bound, else somewhere between
    the bound and the best peak. Two other searches take turns with it: one by pairs, and one that
    repairs plans in which buffers overlap. Ends when peak and bound meet, at the target, or when
    nodes or seconds are used up, with the best plan so far.

    Parameters
    ----------
    nodes
        Nodes to search in all; None for no limit. Only a run that is ended by this, or by
        itself, can be reproduced exactly.
    seconds
        Time limit if the call has none and `nodes` is None.
    rules
        How the next section is chosen: ``"fewest"`` children, then most bytes unplaced;
        ``"few"``, the same, but three children or more count as equal; ``"fewest-tight"``,
        fewest children, then least slack; ``"lowest"`` floor; ``"tightest"``, least slack.
    orders
        Which child is tried first: names of `dsa.solvers.orders.ORDERS`. After the first round
        the ranks are shaken at random.
    guided
        How many times each round also follows the best plan so far: its buffers by offset.
    one_machine
        Whether to bound each section as a machine whose jobs have release times (Jackson).
    cores
        Whether to look, after some starts, for few of the buffers that need more than the bound:
        the large ones, those of a window of sections.
    pairs
        Whether to search by pairs, too, where there are few buffers: which of two lies below.
        Small buffers leave room at many levels, but concern few pairs.
    repair
        Whether to let buffers overlap, too, and move them until none does
        (`dsa.kernels.repair`): it finds plans where the load is high in few places only.
    components
        Whether to search parts that have fallen apart in time one after the other.
    backjumping
        Whether to undo decisions that had no part in a failure without trying alternatives.
    nogoods
        Whether to remember refuted components. They are compared in full: no proof rests on a
        hash.
    symmetry
        Whether to try only one order of equal buffers, and of buffers of the same lifetime that
        lie on one another.
    proof
        Whether to keep, for the bound, a proof that `dsa.proof.check` accepts. What one start
        has refuted is not kept for the next then: the search may take longer.
    max_pairs
        Of a buffer and a section it covers, in a component that is searched: they decide what a
        node and the memory may cost. A larger component is filled by random mixtures, as by
        `strip-packing`, while the time lasts; its statistics say so.
    seed
        Of the random ranks.
    accelerate
        True compiles the kernel with numba, False does not; None does if numba is installed and
        the kernel was compiled before or there is time for it. The result is the same.

    Notes
    -----
    Complexity: exponential at worst. On most real problems hardly a decision is undone: then
    O(n x sections) for the choice of sections, and the buffers a placement concerns.
    Ties: decided by rank, then by position; equal input, equal plan.
    Guarantee: optimal if the status says so. A refuted capacity raises the bound to the next
    peak that is reachable.
    Alignments: a plan is pushed down by putting each buffer, in order of offset, at the lowest
    aligned offset above what lies under it; by induction nothing rises. So the search need only
    try aligned levels. Padding below a buffer is not filled later in the same branch: a buffer in
    it is another child.
    Pins: a pinned buffer stays; the same induction holds for the others. It is the only child of
    a section whose floor it lies on, and its branch dies when a floor passes its pin.
    Source: ours; niches after Alvarez-Valdés et al. 2009 and Kenmochi et al. 2009, components and
    lower offsets after MiniMalloc (Moffitt 2023).

    Examples
    --------
    >>> from dsa import plan
    >>> rows = [(0, 1, 2), (0, 2, 2), (1, 3, 1), (1, 4, 1), (2, 4, 1), (3, 5, 2), (4, 5, 2)]
    >>> p = plan(rows, solver="exact")
    >>> p.problem.load, p.peak, p.status, p.bound_witness.kind
    (4, 5, 'optimal', 'search')
    """

    nodes: int | None = None
    seconds: float = 60.0
    rules: tuple[str, ...] = ("fewest", "tightest", "few", "fewest-tight", "lowest")
    orders: tuple[str, ...] = (
        "span",
        "heaviest",
        "lifetime",
        "urgency",
        "size",
        "area",
        "sections",
    )
    guided: int = 2
    one_machine: bool = False
    cores: bool = True
    pairs: bool = True
    repair: bool = True
    components: bool = True
    backjumping: bool = True
    nogoods: bool = True
    symmetry: bool = True
    proof: bool = False
    max_pairs: int = 2_000_000
    seed: int = 0
    accelerate: bool | None = None

    exact: ClassVar[bool] = True
    supports: ClassVar[frozenset[str]] = ALL
    searches: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_counts(self, "nodes", "guided", "max_pairs", "seed")
        check_seconds("seconds", self.seconds)
        for name in self.orders:
            check_order(name)
        for name in self.rules:
            if name not in RULES:
                raise ValueError(f"no rule is named {name!r}; there are {', '.join(RULES)}")
        if not (self.orders and self.rules):
            raise ValueError("exact needs at least one order and one rule")

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        if budget.time_limit is None and self.nodes is None:
            budget = budget.limited(self.seconds)
        start = StripPacking(restarts=0, moves=0)(problem, budget)
        return self.improve(problem, budget, np.asarray(start.offsets))

    def improve(self, problem: Problem, budget: Budget, offsets: IntArray) -> Solution:
        """Search on from a plan; where the search would be too large, go on filling the skyline.

        Parameters
        ----------
        problem, budget
            As for the call: a component without buffers of size 0.
        offsets
            Of some plan.
        """
        if problem.constrained:
            found = minimise(problem, budget, offsets, self.nodes)
            if budget.time_limit is None or "search" not in found.stats:
                return found
            best = np.asarray(found.offsets)
            filled = fill_mixtures(problem, budget, best, self.seed, None)
            return replace(found, offsets=filled.offsets, stats={**filled.stats, **found.stats})
        sections = problem.sections
        pairs = int((sections.stop - sections.start).sum())
        if pairs > self.max_pairs:
            restarts = 0 if budget.time_limit is None else None
            filled = fill_mixtures(problem, budget, offsets, self.seed, restarts)
            reason = f"not run: {pairs} pairs of buffer and section exceed max_pairs"
            return Solution(filled.offsets, stats={"search": reason, **filled.stats})
        return Minimiser(self, problem, budget, offsets).run()


class Minimiser:
    """One run of `Exact` on one component: the bound from below, the peak from above.

    Parameters
    ----------
    options
        The solver.
    problem
        The component, without buffers of size 0.
    budget
        When to stop.
    start
        Offsets of some plan.
    """

    SHAKE = 0.03  # standard deviation of a shaken rank, as a part of all ranks
    PATIENCE = 3  # starts before cores are tried: many problems need fewer
    HALVINGS = 5  # the shortest step down: the gap halved so many times
    SLICE = 0.05  # seconds between two looks at the clock
    # A node of the search by pairs is worth so many of the other for each buffer; to begin with,
    # there are so many, divided by the buffers.
    PRICE, FIRST = 3, 4000
    MOVES = 3  # for a node, while the best plan has come of moves: each takes half as long

    def __init__(self, options: Exact, problem: Problem, budget: Budget, start: IntArray) -> None:
        self._options = options
        self._problem = problem
        self._budget = budget
        self.offsets, self.peak = start, peak(problem, start)
        self.bound = lower_bound(problem).value
        self.proof = Proof(problem.ids, self.bound - 1) if options.proof else None
        self._reachable = Reachable(problem, self.peak)
        self._nodes = 0
        self._stats = {"nodes": 0, "refuted": 0, "remembered": 0, "met_again": 0}
        # One for the bound, which keeps what it has refuted, and one for capacities above it.
        self._searchers = (self._searcher(problem), self._searcher(problem))
        self._pairs: PairSearch | None = None
        self._may_repair = options.repair and count_pairs(problem) <= MOST
        self._repairs: Repair | None = None
        self._repaired = 0  # nodes when it was last its turn
        self._moves_a_node = 1
        self._compile = options.accelerate is True
        self._began = budget.seconds()
        self._step = 8  # nodes that take about a slice
        self._halvings = 1  # of the gap: so far below the peak is the next capacity above the bound
        random = np.random.default_rng(options.seed)
        self._random = random, *random.spawn(1)  # of starts, of dives

    def _searcher(self, problem: Problem) -> Searcher:
        names = ("one_machine", "components", "backjumping", "nogoods", "symmetry")
        switches = {name: getattr(self._options, name) for name in names}
        return Searcher(problem, **switches, log=self._options.proof)

    def _pair_search(self) -> PairSearch | None:
        if not self._options.pairs or len(self._problem) > LARGEST or self.peak > HIGHEST:
            return None
        bodies, log = self._problem.bodies, self._options.proof
        members = list(range(len(bodies)))
        return PairSearch(bodies, members, bodies.offsets_of(self.offsets), keep_log=log)

    def run(self) -> Solution:
        """Search until peak and bound meet, or until the budget ends it."""
        for start, (rank, rule, nodes) in enumerate(self._starts()):
            if self._options.cores and start == self.PATIENCE:
                self._try_cores()
            if start >= self.PATIENCE:
                self._search_pairs()
                self._search_repairs()
            # As long as a start decides something, it goes on: where that is quick, by halves.
            decided = True
            while decided and not self._finished():
                decided = self._decide(0, self._least(), rank, rule, nodes)
                if not self._finished() and self.peak - 1 > self._least():
                    decided = self._improve(rank, rule, self._few()) or decided
            self._dive(rank, rule, 2 * nodes)
            if self._finished():
                break
        return Solution(self.offsets, self.bound, self._stats, self.proof)

    def _starts(self) -> Iterator[tuple[IntArray, int, int]]:
        """Rank, rule and nodes of each start: all pairs in turn, then again, shaken.

        The fewest nodes are enough for a plan with hardly a decision undone. What is found is
        mostly found by them; a refutation may need more.
        """
        problem, options = self._problem, self._options
        n = len(problem)
        fixed = [sort_by(problem, *ORDERS[name](problem)) for name in options.orders]
        orders, rules = [*fixed, *[None] * options.guided], options.rules
        for start in count():
            # All pairs of rule and order in turn, neighbours unlike each other.
            shift, i = divmod(start, len(orders))
            order, rule = orders[i], rules[(i + shift) % len(rules)]
            # The best plan so far, bottom up, is the order most likely to lead to a better.
            order = sort_by(problem, self.offsets) if order is None else order
            rank = np.empty(n, np.int64)
            rank[order] = np.arange(n)
            if start >= len(orders) * len(rules):
                rank = self._shaken(rank, self._random[0])
            yield rank, RULES[rule], self._few() * _luby(start + 1)

    def _few(self) -> int:
        """Nodes enough for a plan with hardly a decision undone."""
        return 3 * len(self._problem) // 2 + 100

    def _shaken(self, rank: IntArray, random: np.random.Generator) -> IntArray:
        n = len(rank)
        shaken = np.empty_like(rank)
        order = np.argsort(rank + random.normal(0, self.SHAKE * n, n), kind="stable")
        shaken[order] = np.arange(n)
        return shaken

    def _least(self) -> int:
        """The lowest peak that is of use: the bound, or the target where that is higher."""
        return max(self.bound, min(self._budget.target, self.peak - 1))

    def _next_capacity(self) -> int:
        """Below the peak by the whole gap to the bound, by half of it, a quarter, and so on.

        While the peak is over the problem's capacity, that.
        """
        limit, gap = self._problem.capacity, self.peak - self.bound
        if limit is not None and self.bound < limit < self.peak:
            return limit
        return max(self.peak - max(gap >> self._halvings, 1), self._least())

    def _improve(self, rank: IntArray, rule: int, nodes: int, undone: int = INFINITY) -> bool:
        """Look for a plan at the next capacity; whether it is known now if there is one.

        How low one can get is not known beforehand: after each time-out the next step down is
        half as long, and after the shortest as long as can be again.
        """
        capacity = self._next_capacity()
        which = int(capacity > self._least())
        decided = self._decide(which, capacity, rank, rule, nodes, undone)
        self._halvings = 1 if decided else (self._halvings + 1) % (self.HALVINGS + 1)
        return decided

    def _dive(self, rank: IntArray, rule: int, nodes: int) -> None:
        """Look for lower plans by as many short searches as the nodes are enough for.

        A plan above the bound is mostly found with few decisions undone, or not by this rank.
        Where a plan could only be at the bound, the search there is enough.
        """
        few, undone, end = self._few(), len(rank) // 4 + 20, self._nodes + nodes
        for k in count(1):
            if self._nodes >= end or self._finished() or self.peak - 1 <= self._least():
                break
            times, known = _luby(k), self.peak
            shaken = self._shaken(rank, self._random[1])
            self._improve(shaken, rule, times * few, times * undone)
            if self.peak < known:
                end = self._nodes + nodes

    def _decide(
        self,
        which: int,
        capacity: int,
        rank: IntArray,
        rule: int,
        nodes: int,
        undone: int = INFINITY,
    ) -> bool:
        """Whether it was found out if there is a plan within a capacity; peak or bound say so."""
        status = self._search(which, capacity, rank, rule, nodes, undone)
        if status == REFUTED:
            self.bound = min(self._reachable.above(capacity), self.peak)
            self._stats["refuted"] += 1
        return status != PAUSED

    def _search(
        self, which: int, capacity: int, rank: IntArray, rule: int, nodes: int, undone: int
    ) -> int:
        searcher = self._searchers[which]
        searcher.begin(rank, capacity=capacity, rule=rule, undone=undone)
        status = self._run(searcher, nodes)
        if status == FOUND:
            self.offsets, self.peak = searcher.offsets, peak(self._problem, searcher.offsets)
            self._moves_a_node = 1
            self._budget.report(self.peak)
        if status == REFUTED and self._options.proof:
            self.proof = self._proof(self._problem, capacity, rank, searcher.log)
        return status

    def _run(self, searcher: Searcher, nodes: int) -> int:
        status = PAUSED
        while (
            status == PAUSED
            and searcher.nodes < nodes
            and not searcher.given_up
            and not self._out_of_budget()
        ):
            step = min(nodes - searcher.nodes, self._nodes_left(), self._step)
            before, began = searcher.nodes, self._budget.seconds()
            status = searcher.run(step, compile=self._compile)
            self._nodes += searcher.nodes - before
            took = self._budget.seconds() - began
            if took < self.SLICE / 2 and searcher.nodes - before == self._step:
                self._step *= 2
            elif took > self.SLICE:
                self._step = max(self._step // 2, 1)
            self._consider_compiling()
        self._stats["nodes"] = self._nodes
        self._stats["remembered"] += searcher.register[RECORDED]
        self._stats["met_again"] += searcher.register[HITS]
        return status

    def _search_pairs(self) -> None:
        """Go on with the search by pairs, for a part of what the other has cost."""
        if self._finished():
            return
        if self._pairs is None:
            self._pairs = self._pair_search()
        if self._pairs is None:
            return
        pairs, bodies, count = self._pairs, self._problem.bodies, len(self._problem)
        before = pairs.nodes
        nodes = self.FIRST // count + self._nodes // (self.PRICE * count)
        pairs.improve(bodies.offsets_of(self.offsets))
        pairs.run(self._budget, self._least(), min(nodes, before + self._nodes_left()))
        self._nodes += pairs.nodes - before
        self._stats["nodes"] = self._nodes
        self.offsets, self.peak = bodies.restore(pairs.offsets), pairs.peak
        if pairs.proved:
            self.bound = self.peak
            self._stats["refuted"] += 1
            if self._options.proof:
                ids = tuple(self._problem.ids[members[0]] for members in bodies.members)
                self.proof = Proof(ids, self.bound - 1, pairs=True, log=tuple(pairs.log))

    def _search_repairs(self) -> None:
        """Make moves for the nodes since the last time, more if the best plan came of moves."""
        if self._finished() or not self._may_repair:
            return
        if self._repairs is None:
            self._repairs = Repair(self._problem, self.offsets, self._options.seed)
        if self._compile and not self._compiles_repair():
            return  # uncompiled, it would take most of the time
        repairs, known = self._repairs, self.peak
        moves = self._moves_a_node * (self._nodes - self._repaired)
        self._repaired = self._nodes
        repairs.know(self.offsets, self.peak)
        repairs.run(self._budget, least=self._least(), moves=moves, compile=self._compile)
        self.offsets, self.peak = repairs.offsets, repairs.peak
        self._stats["moves"] = repairs.moves
        if self.peak < known:
            self._moves_a_node = self.MOVES

    def _compiles_repair(self) -> bool:
        return (
            self._options.accelerate is True
            or compiled.ready(repair, *REPAIR_HELPERS)
            or self._budget.remaining() > 30
        )

    def _try_cores(self) -> None:
        """Raise the bound by few of the buffers, as long as what was searched so far took."""
        left = self._nodes
        for core in cores(self._problem, self.bound):
            left -= len(core) + self._raise_bound(self._problem.select(core))
            if left < 0 or self._finished():
                break

    def _raise_bound(self, core: Problem) -> int:
        """Refute one capacity after the other, as long as that is quick; the nodes it took."""
        searcher, reachable, before = self._searcher(core), Reachable(core, self.peak), self._nodes
        for order, rule in zip(self._options.orders[:2], self._options.rules[:2], strict=False):
            rank = np.argsort(sort_by(core, *ORDERS[order](core)))
            status = REFUTED
            while status == REFUTED and not self._finished():
                capacity = self._least()
                searcher.begin(rank, capacity=capacity, rule=RULES[rule])
                status = self._run(searcher, 2 * len(core) + 100)
                if status == REFUTED:
                    self.bound = min(reachable.above(capacity), self.peak)
                    self._stats["refuted"] += 1
                if status == REFUTED and self._options.proof:
                    self.proof = self._proof(core, capacity, rank, searcher.log)
            if status == FOUND:
                break
        return self._nodes - before

    def _proof(self, problem: Problem, capacity: int, rank: IntArray, log: list[int]) -> Proof:
        return Proof(
            tuple(problem.ids[i] for i in np.argsort(rank).tolist()),
            capacity,
            symmetry=self._options.symmetry,
            one_machine=self._options.one_machine,
            log=tuple(log),
        )

    def _consider_compiling(self) -> None:
        """Once the search has cost about what loading, or compiling, the kernel would, do it."""
        if self._compile or self._options.accelerate is False or not compiled.available():
            return
        searched = self._budget.seconds() - self._began
        loads = searched > 0.3 and compiled.ready(search, *HELPERS)
        self._compile = loads or (searched > 10 and self._budget.remaining() > 30)

    def _nodes_left(self) -> int:
        limit = self._options.nodes
        return 1 << 60 if limit is None else max(limit - self._nodes, 0)

    def _out_of_budget(self) -> bool:
        return self._budget.expired() or self._nodes_left() == 0

    def _finished(self) -> bool:
        """Whether there is nothing left to find or to prove, or no means to do so."""
        capacity: Any = self._problem.capacity
        return (
            self.bound >= self.peak
            or self.peak <= self._budget.target
            or self._out_of_budget()
            or (capacity is not None and self.bound > capacity)
        )


def _luby(k: int) -> int:
    """The k-th of 1, 1, 2, 1, 1, 2, 4, 1, 1, 2, ...: mostly short, sometimes twice as long."""
    while k & (k + 1):
        k -= (1 << k.bit_length() - 1) - 1
    return (k + 1) >> 1
