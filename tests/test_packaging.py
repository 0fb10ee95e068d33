"""The package as others get it: built, checked and installed into an empty environment."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import raybo

ROOT = Path(__file__).parents[1]


def run(*words: object, cwd: Path) -> str:
    """Return what a command prints; it fails the test with all of it."""
    done = subprocess.run([str(w) for w in words], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, f"{words}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def environment(folder: Path) -> Path:
    """Return the folder of programs of a new environment."""
    venv.create(folder, with_pip=True)
    return folder / ("Scripts" if sys.platform == "win32" else "bin")


def requirements() -> dict[str, str]:
    """Lowest version that pyproject.toml allows, by package, of what is needed and of extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["report"], *extras["optuna"]]
    found = dict(re.findall(r"(?m)^([\w-]+)(?:\[\w+\])?>=([\d.]+)$", "\n".join(needed)))
    assert len(found) == len(needed)
    return found


def test_the_lowest_versions_tested_are_those_that_are_promised() -> None:
    lines = (ROOT / "constraints-lowest.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert set(requirements()) <= set(pinned)
    for name, lowest in requirements().items():
        assert re.fullmatch(rf"{re.escape(lowest)}(\.0)*", pinned[name]), name


def test_the_changelog_begins_with_this_version() -> None:
    first = re.search(r"(?m)^## (\S+?),? ", (ROOT / "CHANGELOG.md").read_text())
    assert first is not None
    assert first[1].rstrip(",") == raybo.__version__


QUICKSTART = """
import raybo
from raybo import Float

def objective(config):
    return (config["x"] - 0.3) ** 2

if __name__ == "__main__":
    result = raybo.optimize(objective, {"x": Float(-1, 1)}, max_trials=4, progress=False)
    result.report("report.html")
    print(len(result.trials), raybo.__version__, raybo.__file__)
"""


@pytest.mark.slow
def test_wheel_and_sdist_are_sound_and_work_in_an_empty_environment(tmp_path: Path) -> None:
    """Needs a package index, as `pip install` does."""
    tools, dist = environment(tmp_path / "tools"), tmp_path / "dist"
    run(tools / "pip", "install", "--quiet", "build", "twine", cwd=tmp_path)
    run(tools / "python", "-m", "build", "--outdir", dist, ROOT, cwd=tmp_path)
    [wheel], [sdist] = dist.glob("*.whl"), dist.glob("*.tar.gz")
    run(tools / "twine", "check", "--strict", wheel, sdist, cwd=tmp_path)
    with tarfile.open(sdist) as files:
        inside = {name.partition("/")[2] for name in files.getnames()}
    assert {"README.md", "CHANGELOG.md", "LICENSE", "constraints.txt"} <= inside
    assert not any(name.startswith("tests/") for name in inside)
    with zipfile.ZipFile(wheel) as files:
        packed = set(files.namelist())
    tracked = run("git", "ls-files", "raybo", cwd=ROOT).split()
    assert set(tracked) <= packed

    programs = environment(tmp_path / "empty")
    pins = ("-c", ROOT / "constraints.txt")
    run(programs / "pip", "install", "--quiet", *pins, f"{wheel}[report]", cwd=tmp_path)
    assert run(programs / "raybo", "--version", cwd=tmp_path).split()[-1] == raybo.__version__
    (tmp_path / "quickstart.py").write_text(QUICKSTART)
    printed = run(programs / "python", "quickstart.py", cwd=tmp_path).split()
    assert printed[:2] == ["4", raybo.__version__]
    assert str(tmp_path / "empty") in printed[2]
    assert "<html" in (tmp_path / "report.html").read_text()
    missing = "import raybo.optuna as o\ntry: o.RayBOSampler\nexcept ImportError as e: print(e)"
    assert "raybo[optuna]" in run(programs / "python", "-c", missing, cwd=tmp_path)
