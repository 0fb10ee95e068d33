import subprocess
import sys

import pytest
import yaml

from raybo.errors import SpaceError
from raybo.space.box import Box
from raybo.space.parameters import Categorical, Choice, Float, Int
from raybo.space.space import Space
from raybo.space.yaml import read_yaml, space_from_yaml

TEXT = """
lr: {type: float, low: 1e-5, high: 0.1, log: true}
width: {type: int, low: 16, high: 512, log: true}
act: {type: categorical, values: [relu, gelu]}
compress:
  type: choice
  branches:
    svd: {rank: {type: int, low: 10, high: 500}}
    l1: {threshold: {type: float, low: 0, high: 1}}
    none:
"""
SPACE = Space(
    {
        "lr": Float(1e-5, 0.1, log=True),
        "width": Int(16, 512, log=True),
        "act": Categorical(["relu", "gelu"]),
        "compress": Choice(
            {"svd": {"rank": Int(10, 500)}, "l1": {"threshold": Float(0, 1)}, "none": {}}
        ),
    }
)


def test_a_text_or_a_file_gives_the_space(tmp_path):
    path = tmp_path / "space.yaml"
    path.write_text(TEXT)
    assert space_from_yaml(TEXT) == SPACE
    assert space_from_yaml(path) == SPACE
    assert space_from_yaml(str(path)) == SPACE
    assert space_from_yaml("{type: box, dim: 1000000000, low: -1, high: 1}") == Box(10**9)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-5", 1e-5), ("-1E5", -1e5), (".5e3", 500.0), ("1.e2", 100.0), ("1.0e+5", 1e5),
        ("12", 12), ("e5", "e5"), ("1e", "1e"), ("'1e5'", "1e5"), ("", None),
    ],
)  # fmt: skip
def test_numbers_are_those_of_yaml_1_2(text, value):
    assert read_yaml(text) == value
    assert type(read_yaml(text)) is type(value)


def test_numbers_with_exponents_are_numbers_in_any_place():
    text = "a: {type: int, low: 1, high: 1e6}\nb: {type: categorical, values: [1e-3, x]}\n"
    assert space_from_yaml(text) == Space({"a": Int(1, 10**6), "b": Categorical([1e-3, "x"])})
    assert space_from_yaml("{type: box, dim: 1e9}") == Box(10**9)


def test_a_parameter_may_be_repeated_by_an_alias():
    space = space_from_yaml("a: &unit {type: float, low: 0, high: 1}\nb: *unit\n")
    assert space == Space({"a": Float(0, 1), "b": Float(0, 1)})


def bomb(entry, n=30):
    lines = ["a0: &a0 {x: {type: float, low: 0, high: 1}}"]
    lines += [entry.format(i=i, last=i - 1) for i in range(1, n)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (bomb("a{i}: &a{i} {{p: *a{last}, q: *a{last}}}"), "aliases repeat more than 100,000"),
        (bomb("a{i}: &a{i} [*a{last}, *a{last}]"), "aliases repeat more than 100,000"),
        ("a: &a {b: *a}", "'a/b': holds itself"),
        ("[" * 5000 + "]" * 5000, "nested too deeply"),
        ("a: " + "9" * 5000, "not YAML"),
        ("a: \x00", "not YAML"),
    ],
)
def test_a_small_text_that_would_take_for_ever_is_refused(text, message):
    with pytest.raises(SpaceError, match=message):
        space_from_yaml(text)


def test_a_long_file_is_read_and_only_what_aliases_repeat_is_limited(monkeypatch):
    monkeypatch.setattr("raybo.space.yaml.MAX_REPEATED", 8)
    unit = "{type: float, low: 0, high: 1}"
    assert space_from_yaml("\n".join(f"p{i}: {unit}" for i in range(50))).dim == 50
    assert space_from_yaml(f"a: &u {unit}\nb: *u\nc: *u\n").dim == 3
    with pytest.raises(SpaceError, match="aliases repeat more than 8 entries"):
        space_from_yaml(f"a: &u {unit}\nb: *u\nc: *u\nd: *u\n")


def test_without_libyaml_the_same_is_read_and_refused(monkeypatch):
    monkeypatch.setattr("yaml.__with_libyaml__", False)
    assert space_from_yaml("a: {type: float, low: 1e-5, high: 1}") == Space({"a": Float(1e-5, 1)})
    with pytest.raises(SpaceError, match="nested too deeply"):
        space_from_yaml("[" * 5000 + "]" * 5000)


@pytest.mark.parametrize(
    "text",
    [
        "a: &x {p: 1, q: [2, 0x1F]}",
        "a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}\n",
        "a: &x {p: 1}\nb: &y {p: 2, q: 3}\nc:\n  <<: [*x, *y]\n  r: 4\n",
        "- 2001-12-14\n- !!str 12\n- !!float 3\n- '5'\n- ~\n- yes\n- 0o7\n- 1_000\n",
        "- &s text\n- *s\n- |\n  two\n  lines\n- >-\n  folded\n  text\n",
        "!!map {a: !!seq [1], ? b : 2, 3: {}, ~: []}",
        "--- 1\n...\n",
    ],
)
def test_what_yaml_1_1_and_1_2_agree_on_is_read_as_pyyaml_does(text):
    assert read_yaml(text) == yaml.safe_load(text)


def test_a_file_in_another_encoding_is_refused(tmp_path):
    path = tmp_path / "space.yaml"
    path.write_bytes(b"a: \xff")
    with pytest.raises(SpaceError, match="not a text in UTF-8"):
        space_from_yaml(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("missing.yaml", "missing.yaml: cannot be read"),
        ("a: [", "not YAML"),
        ("", "a definition is a mapping of parameters, got None"),
        ("a: {type: int, low: 0, high: 1}\na: {type: int, low: 0, high: 2}", "'a': given twice"),
        ("g:\n  a: {type: int, low: 0, low: 1, high: 1}\n", "'g/a/low': given twice"),
        ("a: {type: float, low: x, high: 1}\n", "'a': low must be a number .*, got 'x'"),
        ("a: {type: float, low: 0, hi: 1}\n", "'a': unknown key 'hi' for type 'float'"),
        ("no: {type: float, low: 0, high: 1}\n", "must be non-empty strings, got False; quote it"),
        ("a: !!python/object:os.system {}\n", "not YAML that raybo reads: 'a': has the tag"),
        ("a: !!python/name:os.system\n", "not YAML: could not determine a constructor"),
        ("a: {}\n---\nb: {}\n", "more than one document"),
        ("a: *b\n", "'a': there is no anchor &b before it"),
        ("a: {<<: 3}\n", "'a/<<': merges a mapping or a list of them"),
        ("a: {[b]: 3}\n", "'a': its keys must be texts"),
    ],
)
def test_a_bad_text_is_refused(text, message):
    with pytest.raises(SpaceError, match=message):
        space_from_yaml(text)


def test_building_spaces_loads_neither_scipy_nor_yaml_nor_torch_nor_ray():
    code = (
        "import sys, raybo.space.yaml, raybo.space.tree, raybo.space.design; "
        "print({'scipy', 'yaml', 'torch', 'ray'} & set(sys.modules))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "set()"
