"""The layers: who may import whom, where torch and ray may appear."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "raybo"
MODULES = sorted(PACKAGE.rglob("*.py"))

# A module imports only from its own layer or from those it may reach.
LAYERS = [
    *("arrays", "errors", "space", "surrogate", "acquisition", "methods", "study"),
    *("report", "result", "runtime", "tune", "benchmarks"),
]
BELOW = {layer: set(LAYERS[: i + 1]) for i, layer in enumerate(LAYERS)}
TORCH = {"surrogate", "acquisition", "methods", "benchmarks"}
RAY = {"runtime", "tune", "benchmarks"}
TOP = {"__init__", "__main__", "cli", "cli_options", "demo"}  # may import anything


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_module_imports_only_from_layers_below(path: Path) -> None:
    layer = layer_of(path)
    for name in imports(path):
        parts = name.split(".")
        if parts[0] == "raybo" and len(parts) > 1 and layer not in TOP:
            assert parts[1] in BELOW[layer], f"{layer} imports {name}"
        if parts[0] in ("torch", "cmaes"):
            assert layer in TORCH, f"{layer} imports {name}"
        if parts[0] == "ray":
            assert layer in RAY or layer in TOP, f"{layer} imports {name}"


def test_package_files_hold_only_a_docstring() -> None:
    # raybo.tune has the public name RayBOSearch, loaded on first use as those of raybo are.
    public = {PACKAGE, PACKAGE / "tune"}
    for path in PACKAGE.rglob("__init__.py"):
        if path.parent not in public:
            body = ast.parse(path.read_text()).body
            assert len(body) == 1, path
            assert isinstance(body[0], ast.Expr), path


@pytest.mark.parametrize(
    "code",
    [
        "import raybo",
        "import raybo; raybo.Space; raybo.Box; raybo.Float; raybo.Choice",
        "import raybo.cli",
        "import raybo.tune",
    ],
)
def test_importing_raybo_loads_nothing_heavy(code: str) -> None:
    heavy = "{'torch', 'ray', 'pandas', 'plotly', 'scipy.stats'}"
    script = f"{code}; import sys; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
