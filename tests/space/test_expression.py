"""The language of `where`: what it means, and that nothing else is read."""

from __future__ import annotations

import ast
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raybo.errors import SpaceError
from raybo.space.expression import DEEPEST, LONGEST_TEXT, Expression
from raybo.space.parameters import Categorical, Choice, Float, Int
from raybo.space.space import Space

PARAMETERS: dict[str, Any] = {
    "a": Float(-2, 2),
    "b": Float(-2, 2),
    "n": Int(1, 5),
    "act": Categorical(["relu", "gelu"]),
    "size": Categorical([16, 32]),
    "flag": Categorical([True, False]),
    "solver": Choice({"svd": {"rank": Int(1, 9)}, "none": {}}),
    "net": {"learning rate": Float(0, 1), "depth": Int(1, 4)},
}
COLUMNS = Space(PARAMETERS).columns
VALUES: dict[str, Any] = {
    **{"a": 0.5, "b": -1.0, "n": 2, "act": "relu", "size": 16, "flag": True, "solver": "svd"},
    **{"solver/svd/rank": 3, "net/learning rate": 0.25, "net/depth": 4},
}


def allows(text: str, inactive: str = "") -> bool:
    """Whether a text allows VALUES, one of which may belong to a branch that is not chosen."""
    values = {name: [value] for name, value in VALUES.items()}
    actives = {name: np.array([name != inactive]) for name in VALUES}
    [allowed] = Expression(text, COLUMNS).allows(values, actives)
    return bool(allowed)


@pytest.mark.parametrize(
    "text",
    [
        "a > b",
        "b < a <= n",
        "a + b == -0.5",
        "n ** 2 // 3 == 1 and n % 2 == 0 and -b == 1",
        "a / n == 0.25",
        "abs(b) + sqrt(n * 2) == 3",
        "min(a, b, n) == -1 and max((a, n)) == 2 and sum([a, b]) == -0.5",
        "exp(b + 1) == 1 and log(n / 2) == 0 and sin(b + 1) == 0 and cos(b + 1) == 1",
        "act == 'relu' and act != 'gelu' and act in ('relu', 'elu')",
        "n in (2, 4) and n not in [3] and size in {16, 64}",
        "size * n == 32",
        "flag and not flag == False",
        "a > 5 or not a > 5",
        "solver == 'svd' and solver.svd.rank == 3",
        "net.depth == 4 and net['depth'] == 4 and config['net']['learning rate'] < 0.3",
        "config.a == a",
    ],
)
def test_what_holds_is_allowed_and_its_negation_is_not(text: str) -> None:
    assert allows(text)
    assert not allows(f"not ({text})")


@pytest.mark.parametrize(
    "text", ["solver.svd.rank < 0", "0 / 0 * a > 1", "1 < solver.svd.rank < 2"]
)
def test_what_has_no_value_constrains_nothing(text: str) -> None:
    for same in (text, f"not {text}", f"({text}) or n == 3", f"not ({text} and n == 2)"):
        assert allows(same, inactive="solver/svd/rank")
    assert not allows(f"({text}) and n == 3", inactive="solver/svd/rank")
    assert not allows("solver == 'svd' and n == 3", inactive="solver")
    assert allows("solver == 'none' and n == 2", inactive="solver")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "cannot be read"),
        ("a <", "cannot be read"),
        ("a = b", "cannot be read"),
        ("\x00", "cannot be read"),
        ("(" * 300, "cannot be read"),
        ("a", "not a condition"),
        ("act", "not a condition"),
        ("a + b", "not a condition"),
        ("a if flag else b", "not a condition"),
        ("lambda: a", "not a condition"),
        ("a and b", "not a condition"),
        ("1 < 2", "names no parameter"),
        ("missing < 2", "'missing' is not a parameter; known: 'a', 'b'"),
        ("a.__class__ == 1", "'a.__class__' is not a parameter"),
        ("net.learning < 1", "not a parameter"),
        ("a[0] < 1", "not the path of a parameter"),
        ("__import__('os').system('true') == 0", "cannot be called"),
        ("open('x') == a", "'open' cannot be called"),
        ("a.min() < 1", "cannot be called"),
        ("min(a, key=abs) < 1", "no named arguments"),
        ("min() < a", "min takes numbers"),
        ("abs(a, b) < 1", "abs takes one number"),
        ("act < 3", "'act' is not a number; compare it by =="),
        ("act + 1 < 3", "not numbers"),
        ("a < 'x'", "not a number"),
        ("f'{a}' == act", "not a number"),
        ("a < 1j", "not a number"),
        ("a is None", "'is' is not known here"),
        ("a in b", "after 'in' comes a list"),
        ("[a for a in (1, 2)] == b", "not a number"),
        ("a < 1" + "0" * 400, "beyond 1e308"),
        ("a < 1 " * LONGEST_TEXT, "at most 10,000 are read"),
        ("a" + " + a" * DEEPEST + " < 1", "nested more than 200 deep"),
    ],
)
def test_everything_else_is_refused_with_its_place(text: str, words: str) -> None:
    with pytest.raises(SpaceError, match="(?s)where .*" + words.replace("(", r"\(")):
        Expression(text, COLUMNS)


PIECES = st.sampled_from(
    [
        *("a", "b", "n", "act", "flag", "solver", "net", "config", "rank", "x", "__class__", "os"),
        *("1", "0", "-2.5", "1e400", "'relu'", "''", "True", "None", "...", "1j", "b''", "f''"),
        *("+", "-", "*", "/", "//", "%", "**", "@", "<<", "~", "<", "<=", "==", "!=", "in", "is"),
        *("and", "or", "not", "if", "else", "lambda", "for", "await", "yield", ":=", "=", ":"),
        *("(", ")", "[", "]", "{", "}", ",", ".", "abs", "min", "sum", "eval", "__import__"),
    ]
)


@given(st.lists(PIECES, max_size=14).map(" ".join) | st.text(max_size=30))
def test_any_text_is_a_condition_or_a_space_error(text: str) -> None:
    try:
        Expression(text, COLUMNS)
    except SpaceError:
        return
    tree = ast.parse(text.strip(), mode="eval")
    called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert called <= {"abs", "min", "sum"}
    assert allows(text) in (True, False)


def test_no_exponent_takes_long_or_overflows() -> None:
    assert not allows("9 ** 9 ** 9 ** 9 < a")
    assert allows("9 ** 9 ** 9 ** 9 > a")


def test_a_condition_can_be_pickled() -> None:
    space = pickle.loads(pickle.dumps(Space({"a": Float(0, 1), "n": Int(0, 1)}, where="a < n")))
    assert space.allows({"a": 0.5, "n": 1})
    assert not space.allows({"a": 0.5, "n": 0})
