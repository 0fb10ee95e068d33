"""Conditions on parameters as text: parsed to a tree, which is read, never run as code.

    a <= b                                   names of parameters
    net.width * net.depth < 4096             nested ones by dots, or net["width"]
    config["learning rate"] < 0.1            any name in quotes, from the whole config on
    solver == "svd" and solver.svd.rank < n  a choice is the name of its branch
    act in ("relu", "gelu") or not 1 < a + b < 2

Beside these there are `+ - * / // % **`, and calls of abs, cos, exp, log, max, min, sin, sqrt and
sum. Numbers are computed with as floats. A comparison with something that has no value, such as a
parameter of a branch that is not chosen, or 0/0, constrains nothing: neither it nor its negation
forbids a config.
"""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raybo.arrays import Array, Bools
from raybo.errors import SpaceError
from raybo.space.columns import Column
from raybo.space.parameters import Categorical
from raybo.space.values import is_scalar, listed

LONGEST_TEXT = 10_000  # characters
DEEPEST = 200  # levels of the tree: a sum of more terms is written sum(a, b, ...)
ROOT = "config"  # stands for the whole config, unless a parameter has this name

Values = Sequence[Any] | Array  # (n,)

_NOTHING = object()  # in place of a value that is not a number: the parameter is not active

_ARITHMETIC: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.mod,
    ast.Pow: np.power,
    ast.USub: np.negative,
    ast.UAdd: np.positive,
}
_ORDER: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_OF_ONE: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "cos": np.cos,
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "sqrt": np.sqrt,
}
_OF_MANY: dict[str, Callable[..., Any]] = {"max": np.maximum, "min": np.minimum, "sum": np.add}


class Truth(NamedTuple):
    """Where a condition holds and where its negation does; where neither, it says nothing."""

    yes: Bools
    no: Bools

    def negated(self) -> Truth:
        """Whether it does not hold."""
        return Truth(self.no, self.yes)


class Expression:
    """A condition on the values of some columns.

    Parameters
    ----------
    text : str
        As above.
    columns : sequence of Column
        Of the space.

    Raises
    ------
    SpaceError
        When the text is not such a condition, or names no parameter of the space.
    """

    def __init__(self, text: str, columns: Sequence[Column]) -> None:
        self.text = text
        try:
            self._tree = _Names(columns).visit(_parse(text))
            names = {node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)}
            self.columns = tuple(c for c in columns if c.name in names)
            if not self.columns:
                raise SpaceError("it names no parameter")
            self._numbers = frozenset(c.name for c in self.columns if _has_only(c, int, float))
            self._flags = frozenset(c.name for c in self.columns if _has_only(c, bool))
            self._condition(self._tree, self._values({}, 0))  # refuses what has no meaning
        except SpaceError as error:
            raise SpaceError(f"where {text[:100]!r}: {error}") from None

    def allows(self, values: Mapping[str, Values], actives: Mapping[str, Bools]) -> Bools:
        """Return what the condition does not forbid (n,).

        Parameters
        ----------
        values
            By the name of each of `columns`, its value at each of n points.
        actives
            By the same names, at which points it is active; the value counts nowhere else.
        """
        n = len(next(iter(values.values())))
        forbidden = self._condition(self._tree, self._values(values, n, actives)).no
        return ~np.broadcast_to(forbidden, (n,))

    def _values(
        self,
        values: Mapping[str, Values],
        n: int,
        actives: Mapping[str, Bools] | None = None,
    ) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = {}
        for column in self.columns:
            name = column.name
            number = name in self._numbers
            array: NDArray[Any] = np.empty(n, dtype=np.float64 if number else object)
            array[:] = values.get(name, ())
            if actives is not None:
                array[~actives[name]] = np.nan if number else _NOTHING
            arrays[name] = array
        return arrays

    def _condition(self, node: ast.AST, values: Mapping[str, NDArray[Any]]) -> Truth:
        match node:
            case ast.BoolOp(op=op, values=parts):
                truths = [self._condition(part, values) for part in parts]
                return _all(truths) if isinstance(op, ast.And) else _any(truths)
            case ast.UnaryOp(op=ast.Not(), operand=part):
                return self._condition(part, values).negated()
            case ast.Compare(left=left, ops=ops, comparators=others):
                pairs = zip(ops, [left, *others], others, strict=False)
                return _all(self._comparison(op, a, b, values) for op, a, b in pairs)
            case ast.Constant(value=bool(value)):
                return Truth(np.array(value), np.array(not value))
            case ast.Name(id=name) if name in self._flags:
                return _equality(values[name], np.array(True, dtype=object))
        raise SpaceError(f"{_shown(node)} is not a condition; compare it with something")

    def _comparison(
        self, op: ast.AST, left: ast.AST, right: ast.AST, values: Mapping[str, NDArray[Any]]
    ) -> Truth:
        if isinstance(op, ast.In | ast.NotIn):
            if not isinstance(right, ast.Tuple | ast.List | ast.Set) or not right.elts:
                raise SpaceError(f"after 'in' comes a list such as (1, 2), got {_shown(right)}")
            truth = _any(self._comparison(ast.Eq(), left, entry, values) for entry in right.elts)
            return truth.negated() if isinstance(op, ast.NotIn) else truth
        a, b = self._operand(left, values), self._operand(right, values)
        if isinstance(op, ast.Eq | ast.NotEq):
            truth = _equality(a, b)
            return truth.negated() if isinstance(op, ast.NotEq) else truth
        if type(op) not in _ORDER:
            raise SpaceError("'is' is not known here; use ==")
        for array, side in ((a, left), (b, right)):
            if array.dtype == object:
                raise SpaceError(f"{_shown(side)} is not a number; compare it by ==, != or in")
        holds, known = _ORDER[type(op)](a, b), ~(np.isnan(a) | np.isnan(b))
        return Truth(holds & known, ~holds & known)

    def _operand(self, node: ast.AST, values: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """Values of one side of a comparison: of dtype object unless they are numbers."""
        match node:
            case ast.Constant(value=str() | bool() | None):
                return np.array(node.value, dtype=object)
            case ast.Name(id=name):
                return values[name]
        return self._number(node, values)

    def _number(self, node: ast.AST, values: Mapping[str, NDArray[Any]]) -> Array:
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return np.array(_float(value))
            case ast.Name(id=name) if name in self._numbers:
                return values[name]
            case ast.Name(id=name):
                raise SpaceError(
                    f"{name!r} has values that are not numbers; compare it by ==, != or in"
                )
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                sides = self._number(left, values), self._number(right, values)
                return _computed(_ARITHMETIC[type(op)], *sides)
            case ast.UnaryOp(op=op, operand=part) if type(op) in _ARITHMETIC:
                return _computed(_ARITHMETIC[type(op)], self._number(part, values))
            case ast.Call(func=ast.Constant(value=str(name)), args=[*args]):
                if len(args) == 1 and isinstance(args[0], ast.Tuple | ast.List):
                    args = args[0].elts
                numbers = [self._number(part, values) for part in args]
                if name in _OF_ONE and len(numbers) == 1:
                    return _computed(_OF_ONE[name], *numbers)
                if name in _OF_MANY and numbers:
                    return reduce(lambda a, b: _computed(_OF_MANY[name], a, b), numbers)
                raise SpaceError(f"{name} takes {'one number' if name in _OF_ONE else 'numbers'}")
        raise SpaceError(f"{_shown(node)} is not a number")


class _Names(ast.NodeTransformer):
    """Replaces the path of each parameter by its name, and the name of a function by a text."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._names = {column.path: column.name for column in columns}

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self._parameter(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return self._parameter(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        return self._parameter(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        known = sorted((*_OF_ONE, *_OF_MANY))
        if not isinstance(node.func, ast.Name) or node.func.id not in known:
            raise SpaceError(f"{_shown(node.func)} cannot be called; known: {', '.join(known)}")
        if node.keywords:
            raise SpaceError(f"{node.func.id} takes no named arguments")
        arguments = [self.visit(argument) for argument in node.args]
        return ast.Call(func=ast.Constant(value=node.func.id), args=arguments, keywords=[])

    def _parameter(self, node: ast.AST) -> ast.AST:
        path = tuple(_keys(node))
        for keys in (path, path[1:] if path[0] == ROOT else path):
            if keys in self._names:
                return ast.Name(id=self._names[keys])
        known = listed(".".join(keys) for keys in self._names)
        raise SpaceError(f"{'.'.join(path)!r} is not a parameter; known: {known}")


def _keys(node: ast.AST) -> Iterator[str]:
    """Yield the keys of a path, written a.b or a["b"], outermost first."""
    match node:
        case ast.Name(id=name):
            yield name
        case ast.Attribute(value=owner, attr=name):
            yield from _keys(owner)
            yield name
        case ast.Subscript(value=owner, slice=ast.Constant(value=str(name))):
            yield from _keys(owner)
            yield name
        case _:
            raise SpaceError(f"{_shown(node)} is not the path of a parameter")


def _parse(text: str) -> ast.AST:
    if len(text) > LONGEST_TEXT:
        raise SpaceError(f"it has {len(text):,} characters; at most {LONGEST_TEXT:,} are read")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in strings
            tree: ast.AST = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise SpaceError(f"cannot be read ({error.msg}); write it like a <= b") from None
    except (ValueError, RecursionError, MemoryError):
        raise SpaceError("cannot be read; write it like a <= b") from None
    level, depth = [tree], 0
    while level:
        depth += 1
        if depth > DEEPEST:
            raise SpaceError(
                f"it is nested more than {DEEPEST} deep; write sum(a, b, ...) for a long sum"
            )
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return tree


def _all(truths: Iterable[Truth]) -> Truth:
    yes, no = zip(*truths, strict=True)
    return Truth(reduce(np.logical_and, yes), reduce(np.logical_or, no))


def _any(truths: Iterable[Truth]) -> Truth:
    return _all(truth.negated() for truth in truths).negated()


def _equality(a: NDArray[Any], b: NDArray[Any]) -> Truth:
    if a.dtype != object and b.dtype != object:
        known = ~(np.isnan(a) | np.isnan(b))
        return Truth((a == b) & known, (a != b) & known)
    known = np.asarray(_has_value(a) & _has_value(b), dtype=np.bool_)
    equal = np.asarray(_are_equal(a, b), dtype=np.bool_)
    return Truth(equal & known, ~equal & known)


def _same(a: Any, b: Any) -> bool:
    return is_scalar(a) and is_scalar(b) and bool(a == b)


_are_equal = np.frompyfunc(_same, 2, 1)
_has_value = np.frompyfunc(lambda value: value is not _NOTHING and value == value, 1, 1)


def _computed(function: Callable[..., Any], *numbers: Array) -> Array:
    """Result of numpy, with inf and nan where python would raise."""
    with np.errstate(all="ignore"):
        return np.asarray(function(*numbers), dtype=np.float64)


def _has_only(column: Column, *types: type[Any]) -> bool:
    """Whether all values of a column are of the types."""
    parameter = column.parameter
    if isinstance(parameter, Categorical):
        return all(type(value) in types for value in parameter.values)
    return column.kind != "choice" and float in types


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise SpaceError("it holds a number beyond 1e308") from None


def _shown(node: ast.AST) -> str:
    try:
        return repr(ast.unparse(node)[:80])
    except (RecursionError, ValueError, AttributeError):
        return "a part of it"
