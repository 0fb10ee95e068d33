"""The layers: who may import whom, where torch and ray may appear, and no cycles."""

from __future__ import annotations

import ast
import functools
import graphlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "raybo"
MODULES = sorted(PACKAGE.rglob("*.py"))
METHODS = [path for path in MODULES if path.name in ("default.py", "published.py")]

# A module imports only from its own layer or from those it may reach.
LAYERS = [
    *("arrays", "bytecode", "errors", "lazy", "space", "surrogate", "acquisition", "methods"),
    *("study", "views", "callbacks", "result", "runtime", "tune", "optuna", "benchmarks"),
]
BELOW = {layer: set(LAYERS[: i + 1]) for i, layer in enumerate(LAYERS)}
TORCH = {"surrogate", "acquisition", "methods", "benchmarks"}
LOADS_TORCH = {"lazy", "benchmarks"}  # the others load it on first use
RAY = {"runtime", "tune", "benchmarks"}
TOP = {"__init__", "__main__", "cli", "cli_options", "demo"}  # may import anything

# Modules that name others by strings: to load them on first use, or as a process or a logger.
REGISTRIES = {
    "__init__.py",
    "methods/registry.py",
    "tune/__init__.py",
    "optuna/__init__.py",
    "benchmarks/cli.py",
    "benchmarks/faults/kills.py",
    "benchmarks/faults/damage.py",
    "benchmarks/problems/registry.py",
    "benchmarks/tuners/registry.py",
}


def name_of(path: Path) -> str:
    """Dotted name of a module."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {name_of(path) for path in MODULES}


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imports(path: Path) -> Iterator[str]:
    """Names of the imported modules, wherever in the file the import stands."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            for alias in node.names:  # a module of a package, or a name of a module
                inside = f"{module}.{alias.name}"
                yield inside if inside in NAMES else module


def named(path: Path) -> Iterator[str]:
    """Names of the modules that strings name, as `raybo.module` or `raybo.module:name`."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found = re.fullmatch(r"(raybo\.[\w.]*)(:\w*)?", node.value)
            if found:
                yield found[1]


def lazy_names(path: Path) -> set[str]:
    """Names that a module imports from raybo.lazy."""
    nodes = [n for n in ast.walk(parsed(path)) if isinstance(n, ast.ImportFrom)]
    return {alias.name for n in nodes if n.module == "raybo.lazy" for alias in n.names}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_module_imports_only_from_layers_below(path: Path) -> None:
    layer = layer_of(path)
    for name in (*imports(path), *named(path)):
        parts = name.split(".")
        if parts[0] == "raybo" and len(parts) > 1 and layer not in TOP:
            assert parts[1] in BELOW[layer], f"{layer} imports {name}"
        if parts[0] == "torch":
            assert layer in LOADS_TORCH, f"{layer} imports {name}; take it from raybo.lazy"
        if parts[0] == "cmaes" or (name == "raybo.lazy" and "torch" in lazy_names(path)):
            assert layer in TORCH, f"{layer} imports {name}"
        if parts[0] == "ray":
            assert layer in RAY or layer in TOP, f"{layer} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_only_registries_name_modules_by_strings(path: Path) -> None:
    if str(path.relative_to(PACKAGE)) not in REGISTRIES:
        assert not list(named(path)), "import them"


@pytest.mark.parametrize("path", METHODS, ids=lambda p: p.parent.name)
def test_a_method_and_its_paper_do_not_mix(path: Path) -> None:
    """A default has no branch for the published algorithm, which needs nothing of a default."""
    if path.name == "default.py":
        words = set(re.findall(r"[a-z]+", path.read_text().lower()))
        assert not words & {"paper", "papers", "preset", "published"}
    assert path.name == "default.py" or not [n for n in imports(path) if n.endswith(".default")]


def test_no_module_imports_itself_through_others() -> None:
    # The package itself is left out: its public names are loaded on first use.
    graph = {
        name_of(path): {n for n in (*imports(path), *named(path)) if n in NAMES}
        for path in MODULES
    }
    del graph["raybo"]
    try:
        graphlib.TopologicalSorter({k: v - {"raybo"} for k, v in graph.items()}).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_no_module_needs_a_unix_system_when_it_is_imported() -> None:
    unix = {"fcntl", "grp", "pty", "pwd", "resource", "termios"}
    for path in MODULES:
        if "faults" in path.parts:  # kills processes of a local cluster
            continue
        for node in parsed(path).body:
            if isinstance(node, ast.Import):
                assert not unix & {alias.name for alias in node.names}, path
            elif isinstance(node, ast.ImportFrom):
                assert node.module not in unix, path


def test_package_files_hold_only_a_docstring() -> None:
    # raybo.tune and raybo.optuna have public names, loaded on first use as those of raybo are.
    public = {PACKAGE, PACKAGE / "tune", PACKAGE / "optuna"}
    for path in PACKAGE.rglob("__init__.py"):
        if path.parent not in public:
            body = parsed(path).body
            assert len(body) == 1, path
            assert isinstance(body[0], ast.Expr), path


@pytest.mark.parametrize(
    "code",
    [
        "import raybo",
        "import raybo; raybo.Space; raybo.Box; raybo.Float; raybo.Choice",
        "import raybo.cli",
        "import raybo.tune",
        "import raybo.optuna",
    ],
)
def test_importing_raybo_loads_nothing_heavy(code: str) -> None:
    heavy = "{'torch', 'ray', 'optuna', 'pandas', 'plotly', 'scipy.stats'}"
    script = f"{code}; import sys; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_workers_load_neither_the_coordinator_nor_a_method() -> None:
    script = (
        "import sys, raybo.runtime.actor, raybo.runtime.evaluations.evaluate; "
        "names = ('raybo.runtime.coordinator', 'raybo.runtime.backend', 'raybo.methods', 'scipy');"
        "print([name for name in names if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
