"""Models of frameworks as problems: when each value is written first and read last, and its size.

Every source counts in the same way:

==========  =======================================================================
step        an operator that computes, in the order of the model
buffer      a value that an operator writes; inputs and constants are left out
alias       a reshape or a view has no buffer of its own: it keeps that of its input
folded      what depends on constants only is a constant: runtimes compute it early
output      an output of the model lives to the end
size        bytes of the value, not aligned
==========  =======================================================================

The framework is imported when a model is read. ``dsa.load("model.onnx")`` comes here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from dsa.errors import SolverUnavailableError
from dsa.problem import Problem

__all__ = ["Operator", "lifetimes", "require"]


def require(module: str, what: str) -> Any:
    """Import a framework.

    Raises
    ------
    SolverUnavailableError
        If it is not installed; says what to install.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise SolverUnavailableError(
            f"{what} needs the package {module}, which the extra {module!r} brings: "
            f"pip install {module}"
        ) from error


class Operator(NamedTuple):
    """What an operator of a model file reads and writes, by the names of the values.

    Parameters
    ----------
    reads, writes
        Names; whatever names nothing has been left out.
    alias
        Whether its first result is its first argument under another name.
    """

    reads: Sequence[str]
    writes: Sequence[str]
    alias: bool = False


def lifetimes(
    operators: Iterable[Operator],
    constants: Iterable[str],
    outputs: Iterable[str],
    size: Callable[[str], int],
) -> Problem:
    """The problem of a model, given as a list of operators.

    Parameters
    ----------
    operators
        In the order in which they run.
    constants
        Names of the values that are there before.
    outputs
        Names of the values that are wanted in the end.
    size
        Bytes of a value; asked for those only that get a buffer.

    Examples
    --------
    >>> operators = [Operator(["x", "w"], ["a"]), Operator(["a"], ["b"], alias=True),
    ...              Operator(["b"], ["y"])]
    >>> for buffer in lifetimes(operators, {"w"}, ["y"], lambda name: 8):
    ...     print(buffer.id, buffer.lower, buffer.upper)
    a 0 2
    y 1 2
    """
    constant = set(constants)
    owner: dict[str, str] = {}  # of an alias: the value whose buffer it has
    lower: dict[str, int] = {}
    upper: dict[str, int] = {}
    step = 0
    for reads, writes, alias in operators:
        if constant.issuperset(reads):
            constant.update(writes)
            continue
        if alias and writes and reads[0] not in constant:
            owner[writes[0]] = owner.get(reads[0], reads[0])
            continue
        for name in writes:
            lower.setdefault(name, step)
        for name in (*reads, *writes):
            upper[owner.get(name, name)] = step + 1
        step += 1
    for name in outputs:
        upper[owner.get(name, name)] = step
    return Problem.from_columns(
        list(lower.values()),
        [upper[name] for name in lower],
        list(map(size, lower)),
        ids=list(lower),
    )
