"""What the documentation shows works: Python blocks run, commands parse, docstring examples hold.

Every ```python block of README.md, CONTRIBUTING.md and docs/ is executed in the order of the page,
on the test run's Ray cluster. Blocks under one `##` heading share a namespace, which starts with
what a reader is assumed to have (`reader_namespace`); the first blocks of README and docs start
with nothing. The only changes to the text are those of SMALLER.
"""

from __future__ import annotations

import doctest
import functools
import importlib
import importlib.util
import math
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner

import raybo
from raybo import Float
from raybo.cli import main
from raybo.methods.registry import METHODS

ROOT = Path(__file__).parents[1]
GUIDES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs/pages").glob("*.md"))
PAGES = ["README.md", "CONTRIBUTING.md", *GUIDES]
COMMAND_PAGES = [*PAGES, "cluster/README.md", "examples/RESULTS.md"]
# Budgets of the documentation, and what a test run affords; its cluster has two CPUs, no GPU.
SMALLER = [
    (r"\b(max_trials|num_samples|n_trials)=\d+", r"\1={trials}"),
    (r"\bworkers=\d+", "workers=2"),
    (r"\bmax_concurrent_trials=\d+", "max_concurrent_trials=1"),
    (r'"num_gpus": [\d.]+', '"num_gpus": 0'),
]


def sections(page: str) -> dict[str, list[str]]:
    """Python blocks under each `##` heading of a page, without the headings that have none."""
    found = {}
    for section in re.split(r"(?m)^## ", (ROOT / page).read_text()):
        blocks = re.findall(r"(?ms)^```python\n(.*?)^```$", section)
        if blocks:
            found[section.splitlines()[0].lstrip("# ")] = blocks
    return found


def train(config: dict[str, Any]) -> dict[str, float]:
    """Stand-in for a reader's training, with every metric that the pages name."""
    rate = math.log10(config.get("lr", 0.01))
    outcomes = {"loss": (rate + 2) ** 2, "accuracy": 1 / (1 + abs(rate + 2))}
    return outcomes | {"latency": 8.0 - rate, "memory": 1e9}


def reader_namespace() -> dict[str, Any]:
    """Names that the pages take for granted, and `__name__` as in a script."""
    from ray import tune

    return {
        "__name__": "__main__",
        "raybo": raybo,
        "Float": Float,
        "tune": tune,
        "objective": lambda config: sum(float(value) ** 2 for value in config.values()),
        "train": train,
        "space": {"lr": Float(1e-5, 1e-1, log=True), "momentum": Float(0, 1)},
        "value": 0.5,
    }


@pytest.mark.ray
@pytest.mark.parametrize(
    ("page", "section"),
    [pytest.param(p, name, id=f"{Path(p).stem}: {name}") for p in PAGES for name in sections(p)],
)
def test_python_blocks_run(
    page: str,
    section: str,
    ray_cluster: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    # These run as they stand, when pasted.
    first = section == next(iter(sections("README.md"))) or section == "A first study"
    namespace = {"__name__": "__main__"} if first else reader_namespace()
    blocks = sections(page)[section]
    # One trial for each worker, and some for a model where there is one to be asked.
    trials = 4 if any(".importances()" in block for block in blocks) else 2
    for block in blocks:
        for pattern, smaller in SMALLER:
            block = re.sub(pattern, smaller.format(trials=trials), block)
        exec(compile(block, f"{page} [{section}]", "exec"), namespace)
        for written in re.findall(r'\.report\("(.+?)"\)', block):
            assert "<html" in (tmp_path / written).read_text()
    for value in namespace.values():
        if isinstance(value, raybo.Result):
            assert len(value.trials) == trials
            assert value.best_value is not None
            assert math.isfinite(value.best_value)


def code_spans(page: str) -> Iterator[str]:
    """Lines of indented and fenced blocks, and `inline` code."""
    text = (ROOT / page).read_text()
    yield from re.findall(r"(?m)^    (\S.*)$", text)
    for block in re.findall(r"(?ms)^```(?:bash|sh|console)\n(.*?)^```$", text):
        yield from block.replace("\\\n", " ").splitlines()
    without_fences = re.sub(r"(?ms)^```.*?^```$", "", text)
    for span in re.findall(r"`([^`]+)`", without_fences):
        yield " ".join(span.split())


def commands(page: str, program: str) -> list[list[str]]:
    """Words of each command of `program` on a page, without comments; `a|b` gives two commands."""
    found = []
    for span in code_spans(page):
        for line in span.split(" · "):
            words = shlex.split(line, comments=True) if line.startswith(f"{program} ") else []
            ways: list[list[str]] = [[]]
            for word in words[1:]:
                ways = [[*way, part] for way in ways for part in word.split("|")]
            found += [way for way in ways if way]
    return found


@functools.cache
def bench_list() -> str:
    return CliRunner().invoke(main, ["bench", "--list"], catch_exceptions=False).output


def check_command(words: list[str]) -> None:
    """Raise click's UsageError unless the command line takes these words; nothing is run."""
    context = main.make_context("raybo", list(words))
    name, command, rest = main.resolve_command(context, list(words))
    assert name is not None
    assert command is not None
    if "..." in rest:  # abridged: what is shown of it must exist
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in rest if word.startswith("--")} <= known, words
        return
    command.make_context(name, rest, parent=context).close()
    if name == "bench" and rest and re.fullmatch(r"[a-z0-9-]+", rest[0]):
        assert re.search(rf"(?m)(^|\s){re.escape(rest[0])}(\s|$)", bench_list()), words


@pytest.mark.parametrize("page", COMMAND_PAGES)
def test_commands_of_raybo_parse(page: str) -> None:
    for words in commands(page, "raybo"):
        if len(words) == 1 and words[0] in main.commands:
            continue  # a command is mentioned, without its arguments
        try:
            check_command(words)
        except click.UsageError as error:
            pytest.fail(f"{page}: raybo {' '.join(words)}: {error.format_message()}")


def test_commands_are_found_and_wrong_ones_are_noticed() -> None:
    shown = {words[0] for words in commands("README.md", "raybo")}
    assert {"demo", "run", "status", "resume", "report", "export", "bench"} <= shown
    for wrong in (["run", "m:f", "--spice", "x"], ["export", "NAME", "--to", "stone"], ["resume"]):
        with pytest.raises(click.UsageError):
            check_command(wrong)


@pytest.mark.parametrize("page", COMMAND_PAGES)
def test_commands_of_make_have_their_targets(page: str) -> None:
    for words in commands(page, "make"):
        done = subprocess.run(
            ["make", "-n", *words], cwd=ROOT, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, f"{page}: make {' '.join(words)}: {done.stderr}"


@pytest.mark.parametrize("page", COMMAND_PAGES)
def test_links_lead_to_files_that_exist(page: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / page).read_text()):
        if "://" not in target:
            assert ((ROOT / page).parent / target).exists(), f"{page}: {target}"


EXAMPLES_IN = sorted(
    str(path.relative_to(ROOT).with_suffix("")).replace("/", ".")
    for path in (ROOT / "raybo").rglob("*.py")
    if ">>> " in path.read_text()
)


def test_some_docstrings_have_examples() -> None:
    assert "raybo.space.space" in EXAMPLES_IN


@pytest.mark.parametrize("module", EXAMPLES_IN)
def test_examples_in_docstrings_hold(module: str) -> None:
    found = doctest.testmod(importlib.import_module(module))
    assert found.attempted > 0
    assert found.failed == 0


def hooks() -> Any:
    """The code that fills in what pages take from elsewhere."""
    path = ROOT / "docs/hooks.py"
    spec = importlib.util.spec_from_file_location("docs_hooks", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_option_of_every_method_is_explained() -> None:
    made = hooks()
    for name, presets in METHODS.items():
        for preset in presets:
            for option, _, meaning in made.options_of(name, preset):
                assert meaning, f"{name} {preset}: no comment beside {option}"
    page = made.on_page_markdown("{{ method options }}\n{{ file CHANGELOG.md }}")
    assert "### `rembo`" in page
    assert "one of `log_ei`, `ei`, `ucb`" in page
    assert "# Changes" in page
    assert "{{" not in page


def test_every_page_is_in_the_navigation() -> None:
    config = yaml.safe_load((ROOT / "docs/mkdocs.yml").read_text())
    listed = [page for entry in config["nav"] for page in entry.values()]
    assert sorted(f"docs/pages/{page}" for page in listed) == GUIDES


def test_the_reference_names_what_exists_and_all_that_is_public() -> None:
    named = re.findall(r"(?m)^::: (\S+)$", (ROOT / "docs/pages/api.md").read_text())
    objects = []
    for path in named:
        module, _, name = path.rpartition(".")
        objects.append(
            getattr(importlib.import_module(module), name, None) or importlib.import_module(path)
        )
    described = {"__version__", "RayboError"}  # the latter with all errors
    others = [name for name in raybo.__all__ if name not in described]
    assert [name for name in others if getattr(raybo, name) not in objects] == []
