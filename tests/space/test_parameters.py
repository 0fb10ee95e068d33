import numpy as np
import pytest

from raybo.errors import SpaceError
from raybo.space.parameters import Categorical, Choice, Float, Int


def test_float_is_affine_or_affine_in_the_logarithm():
    assert Float(-2, 6).encode(0) == 0.25
    assert Float(-2, 6).decode(0.25) == 0.0
    assert Float(1e-4, 1, log=True).encode(1e-2) == pytest.approx(0.5)
    assert Float(1e-4, 1, log=True).decode(0.25) == pytest.approx(1e-3)


@pytest.mark.parametrize("log", [False, True])
def test_float_reaches_its_bounds_and_never_leaves_them(log):
    parameter = Float(0.1, 0.7, log=log)
    assert parameter.decode(0.0) == pytest.approx(0.1, rel=1e-15)
    assert parameter.decode(1.0) == pytest.approx(0.7, rel=1e-15)
    for u in np.linspace(0, 1, 1001).tolist():
        assert 0.1 <= parameter.decode(u) <= 0.7


def test_quantised_float_gives_exact_decimals_and_its_upper_bound():
    parameter = Float(0, 1, step=0.1)
    assert parameter.cardinality == 11
    assert [parameter.value(k) for k in range(11)] == [
        0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0
    ]  # fmt: skip
    assert Float(0, 1, step=0.3).decode(1.0) == 0.9
    assert parameter.plain(0.1 + 0.2) == 0.3


def test_quantised_float_on_a_log_scale_gives_small_values_more_room():
    parameter = Float(0.1, 10, log=True, step=0.1)
    values = [parameter.decode(u) for u in np.linspace(0, 1, 101).tolist()]
    assert values[0] == 0.1
    assert values[-1] == 10.0
    assert values[50] < 2
    for value in values:
        assert parameter.decode(parameter.encode(value)) == value


def test_int_bounds_are_inclusive_and_have_equal_shares():
    parameter = Int(1, 4)
    u = (np.arange(4000) + 0.5) / 4000
    values, counts = np.unique([parameter.decode(x) for x in u.tolist()], return_counts=True)
    assert values.tolist() == [1, 2, 3, 4]
    assert counts.tolist() == [1000] * 4


def test_int_of_huge_range_stays_in_it():
    for parameter in (Int(-(10**18), 10**18), Int(1, 10**18, log=True), Int(0, 2**64)):
        for u in (0.0, 1e-300, 0.3, 1 - 2**-53, 1.0):
            value = parameter.decode(u)
            assert type(value) is int
            assert parameter.low <= value <= parameter.high
            assert 0 <= parameter.encode(value) <= 1
        assert parameter.decode(0.0) == parameter.low
        assert parameter.decode(1.0) == parameter.high


def test_int_with_step():
    parameter = Int(16, 130, step=16)
    assert [parameter.value(k) for k in range(parameter.cardinality)] == list(range(16, 129, 16))
    assert not parameter.contains(17)
    assert not parameter.contains(130)


@pytest.mark.parametrize(
    "parameter", [Float(3, 3), Float(3, 3, log=True, step=1), Int(3, 3), Int(3, 3, log=True)]
)
def test_equal_bounds_make_a_constant(parameter):
    assert parameter.cardinality == 1
    assert parameter.encode(3) == 0.5
    assert [parameter.decode(u) for u in (0.0, 0.5, 1.0)] == [3, 3, 3]


def test_categorical_keeps_type_and_identity():
    thing = object()
    array = np.zeros(2)
    parameter = Categorical([1, 1.0, True, "1", None, thing, array, (1, 2), float("nan")])
    parameter.check()
    for k, value in enumerate(parameter.values):
        assert parameter.decode(parameter.encode(value)) is value
        assert parameter.rank(value) == k
    assert parameter.encode((1, 2)) == parameter.encode(parameter.values[7])
    assert not parameter.contains(False)
    assert not parameter.contains(np.zeros(2))
    assert Categorical([1]) != Categorical([True])
    assert Categorical([1]) == Categorical((1,))


def test_choice_converts_branch_names():
    parameter = Choice({"a": {}, "b": {"x": Float(0, 1)}})
    assert (parameter.encode("a"), parameter.encode("b")) == (0.25, 0.75)
    assert (parameter.decode(0.49), parameter.decode(0.5)) == ("a", "b")
    assert parameter.contains("b")
    assert not parameter.contains("c")


def test_choice_is_not_changed_by_its_argument():
    branches = {"a": {"x": Float(0, 1)}}
    parameter = Choice(branches)
    branches["a"]["y"] = Int(0, 1)
    branches["b"] = {}
    assert list(parameter.branches) == ["a"]
    assert list(parameter.branches["a"]) == ["x"]


def test_numbers_accept_numpy_and_integral_floats_but_not_bool_or_text():
    assert Int(1, 1e6).high == 1_000_000
    assert type(Int(np.int64(1), 3).low) is int
    assert Int(0, 9).plain(np.int32(3)) == 3
    assert Int(0, 9).plain(3.0) == 3
    assert Float(0, 9).plain(np.float32(0.5)) == 0.5
    for parameter, bad in [(Int(0, 9), 3.5), (Int(0, 9), True), (Int(0, 9), "3"),
                           (Float(0, 9), True), (Float(0, 9), "3"), (Float(0, 9), None),
                           (Float(0, 9), float("nan")), (Int(0, 9), float("inf"))]:  # fmt: skip
        assert not parameter.contains(bad)


def test_an_off_grid_float_is_told_its_nearest_value():
    with pytest.raises(SpaceError, match=r"0\.34 is not low \+ k \* step .* nearest .* 0\.3"):
        Float(0, 1, step=0.1).encode(0.34)


def test_repr_leaves_out_the_defaults():
    assert repr(Float(1e-5, 1, log=True)) == "Float(1e-05, 1.0, log=True)"
    assert repr(Int(1, 9, step=2)) == "Int(1, 9, step=2)"
    assert repr(Categorical(("a", 1))) == "Categorical(['a', 1])"
    assert repr(Choice({"a": {"x": Int(0, 1)}})) == "Choice({'a': {'x': Int(0, 1)}})"


@pytest.mark.parametrize(
    "parameter",
    [Float(0, 1, log=True), Int("1", 2), Categorical([]), Choice(["a"]), Float(0, 1, step=2)],
    ids=repr,
)
def test_a_bad_parameter_is_refused_by_check(parameter):
    with pytest.raises(SpaceError):
        parameter.check()
