"""Files that somebody made to break raybo: only its own errors may come out, and soon.

A good file is edited by hypothesis: parts of it are replaced by anything that JSON or YAML can
hold, removed or repeated. Journals get right checksums, so that their records reach the code that
interprets them.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import logging
import tempfile
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import yaml
from hypothesis import strategies as st
from rich.console import Console

from raybo.errors import RayboError
from raybo.result import load_result
from raybo.runtime.resume import resume_arguments
from raybo.space.yaml import space_from_yaml
from raybo.study.journal.compact import COMPACT_FILE, compact
from raybo.study.journal.journal import JOURNAL_FILE, LOCK_FILE, Journal, parse_journal
from raybo.study.optimizer import Optimizer
from raybo.study.outcome import list_studies
from raybo.tune.searcher import RayBOSearch
from raybo.views.export import table
from raybo.views.status import status_of, status_table, study_table

_SPACE = {
    "lr": {"type": "float", "low": 1e-5, "high": 0.1, "log": True},
    "width": {"type": "int", "low": 16, "high": 512, "step": 8},
    "act": {"type": "categorical", "values": ["relu", 3, None]},
    "compress": {
        "type": "choice",
        "branches": {"svd": {"rank": {"type": "int", "low": 1, "high": 9}}, "none": {}},
    },
}
_CONFIG = {"lr": 0.01, "width": 24, "act": "relu", "compress": {"svd": {"rank": 4}}}
_SPAN = {"attempts": 1, "started": 1.7e9, "finished": 1.7e9 + 1}
_EVENTS = [
    {"kind": "header", "name": "s", "space": _SPACE, "method": {"name": "random", "options": {}},
     "lanes": 1, "mode": "min", "metric": None, "seed": 0, "objective": "math:hypot",
     "constraints": {"a": [None, 5.0]}, "created": 1.7e9},
    {"kind": "session", "id": "a", "time": 1.7e9, "who": {}, "code": "3.11:a",
     "resume_hint": "raybo resume s",
     "settings": {"max_trials": 9, "workers": 2, "resources": {"num_cpus": 1}}},
    {"kind": "given", "number": 0, "config": _CONFIG, "value": 2.0, "finished": 1.7e9,
     "extra": {"a": 7}},
    {"kind": "points", "configs": [_CONFIG]},
    {"kind": "asked", "number": 1, "config": _CONFIG, "source": "point"},
    {"kind": "asked", "number": 2, "config": _CONFIG, "memo": {"fitted": 3}},
    {"kind": "asked", "number": 3, "config": _CONFIG},
    {"kind": "asked", "number": 4, "config": _CONFIG},
    {"kind": "report", "number": 4, "steps": [[1, 0.5], [2, 0.4]], "checkpoint": [2, "a.pt"]},
    {"kind": "paused", "number": 4, "extra": {}, **_SPAN},
    {"kind": "promoted", "number": 4, "time": 1.7e9},
    {"kind": "paused", "number": 4, "extra": {}, **_SPAN},
    {"kind": "retry", "number": 1, "cause": "crash", "reason": "died", "lost": False},
    {"kind": "interrupted", "numbers": [3]},
    {"kind": "done", "number": 2, "value": 1.5, "extra": {"a": 1, "b": [1, "c"]}, **_SPAN},
    {"kind": "failed", "number": 1, "reason": "no", "cause": "crash", "alike": "x",
     "traceback": "t", **_SPAN},
    {"kind": "stopped", "reason": "enough", "outcome": "max_trials", "error": None,
     "time": 1.7e9, "seconds": 3.0, "use": 0.5},
]  # fmt: skip
_TRIAL = {"number": 0, "config": _CONFIG, "value": 2.5, "state": "done", "reason": None,
          "attempts": 0, "started": None, "finished": None, "extra": {}, "memo": {}}  # fmt: skip
_OPTIMIZER = {"version": 1, "space": _SPACE, "method": {"name": "random", "options": {}},
              "mode": "min", "seed": 0, "trials": [_TRIAL]}  # fmt: skip
_SEARCHER = {
    "raybo": "RayBOSearch", "version": 1, "metric": "loss", "mode": "min", "seed": 1,
    "method": {"name": "random", "options": {"dict": []}},
    "points": [{"dict": [["lr", 0.01]]}],
    "evaluated": [{"list": [{"dict": [["lr", 0.01]]}, 1.0, False]}],
    "space": {"param_space": {"dict": [["lr", {"tune": ["loguniform", 1e-4, 0.1]}],
                                       ["a", {"choice": [1, {"dict": []}]}]]}},
    "book": {"trials": [{**_TRIAL, "config": {"lr": 0.01, "a": {"0": {}}}}],
             "ids": {"t0": 0}, "next": 1},
}  # fmt: skip
_HOLDER = {"pid": 1, "driver": 1, "host": "h", "since": 1.7e9, "epoch": 3, "session": "a"}

_TEXTS = ("\udcff", "\x1b[2J", "=1+1", "", "../x", "x" * 10_000, "nan", "1e999", "a:b", "\0")
_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**400, -1, 2**63, 10**12]),
    st.floats(),
    st.sampled_from(_TEXTS),
    st.text(max_size=8),
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)
_YAML_PARTS = ("&a ", "*a", "<<: ", "? ", "- ", "[", "]", "{", "}", ": ", "\n", "  ", "!!python/",
               "!!int ", "!!timestamp ", "|", ">", "%YAML 1.1\n", "---\n", "...", "#", '"', "'",
               "type: float", "low: 0", "high: 1", "x: ", "0x", "1_0", "1e999", "\t", ".inf",
               "!!set ", "!!binary ", "2001-99-99", "190:20:30", "=", "~", "\ufeff")  # fmt: skip

_WHERE_PARTS = ("lr", "width", "act", "compress", "compress.svd.rank", "config", '["lr"]', "<=",
                "==", " in ", " is ", " and ", " or ", "not ", "(", ")", ",", "+", "-", "*", "**",
                "//", "%", "@", "<<", "9", "0x", "1e999", "9" * 400, "'x'", "None", "sum(", "max(",
                "exp(", ".", "lambda: ", ":=", "[", "]", "f'{lr}'", "\n", "#", "\0",
                "(" * 150, ")" * 150, "+ lr" * 150, "**9" * 50, ", 1" * 500)  # fmt: skip


@st.composite
def edited(draw: st.DrawFn, document: Any) -> Any:
    """Return a copy of a document in which up to four parts are replaced, removed or repeated."""
    document = json.loads(json.dumps(document))
    for _ in range(draw(st.integers(1, 4))):
        holder, key = draw(st.sampled_from(_places(document)))
        what = draw(st.sampled_from(("replace", "replace", "remove", "repeat")))
        if what == "replace":
            holder[key] = draw(_VALUES)
        elif what == "remove":
            del holder[key]
        elif isinstance(holder, list):
            holder.insert(key, holder[key])
        else:
            holder[draw(st.text(max_size=4))] = holder[key]
        if not _places(document):
            break
    return document


def _places(document: Any) -> list[tuple[Any, Any]]:
    """Return all pairs of a container and a key or index in it."""
    found, waiting = [], [document]
    for item in waiting:
        keys = item if isinstance(item, dict) else range(len(item))
        found += [(item, key) for key in keys]
        waiting += [item[key] for key in keys if isinstance(item[key], dict | list)]
    return found


def journals() -> st.SearchStrategy[bytes]:
    """Journals with right checksums, some of them cut or with a flipped byte."""
    sealed = st.tuples(edited(_EVENTS), st.integers(0, 30)).map(_sealed)
    return sealed | st.tuples(sealed, st.integers(0), st.integers(0, 255)).map(_flipped)


def _sealed(pair: tuple[Any, int]) -> bytes:
    events, odd = pair
    lines = []
    for seq, event in enumerate(events):
        body = {"v": 1, "seq": seq, "epoch": 1, "event": event}
        if odd == seq:
            body = event if isinstance(event, dict) else {"v": 1, "seq": seq}
        rest = json.dumps(body, separators=(",", ":")).encode()[1:]  # as raybo writes it
        lines.append(b'{"crc":"%08x",%s\n' % (zlib.crc32(rest), rest))
    return b"".join(lines)


def _flipped(item: tuple[bytes, int, int]) -> bytes:
    data, place, byte = item
    place %= len(data) + 1
    return data[:place] if byte < 128 else data[:place] + bytes([byte]) + data[place + 1 :]


def short_journals() -> st.SearchStrategy[bytes]:
    """Short journals of the journal of `_EVENTS`, with right checksums."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / JOURNAL_FILE).write_bytes(_sealed((_EVENTS, -1)))
        compact(Path(folder))
        events = parse_journal((Path(folder) / COMPACT_FILE).read_bytes(), "short").events
    return edited(events[1:]).map(lambda rest: _sealed((events[:1] + rest, -1)))


def yaml_texts() -> st.SearchStrategy[bytes]:
    """YAML files: edited definitions of spaces, and pieces of syntax in any order."""
    dumped = edited(_SPACE).map(lambda x: yaml.safe_dump(x, allow_unicode=False).encode())
    pieces = st.lists(st.sampled_from(_YAML_PARTS) | st.text(max_size=3), max_size=30)
    return dumped | pieces.map(lambda x: "".join(x).encode("utf-8", "surrogatepass"))


def conditions() -> st.SearchStrategy[bytes]:
    """YAML files of a space with a `where` of pieces of syntax, repeated up to 100 times."""
    pieces = st.lists(st.sampled_from(_WHERE_PARTS) | st.text(max_size=2), max_size=12)
    starts = st.sampled_from(("", "lr <= ", "width in (1", "act == ", "not "))
    texts = st.tuples(starts, pieces, st.sampled_from((1, 1, 1, 3, 100)))
    return texts.map(
        lambda item: json.dumps({**_SPACE, "where": item[0] + "".join(item[1]) * item[2]}).encode()
    )


def check_journal(data: bytes, folder: Path) -> None:
    """Do with a journal all that the read-only commands do, and what comes before a resume."""
    study = folder / "s"
    study.mkdir(exist_ok=True)
    (study / JOURNAL_FILE).write_bytes(data)
    storage, console = str(folder), Console(file=io.TextIOWrapper(io.BytesIO()), width=99)
    console.print(study_table(list_studies(storage)))  # one bad study must not hide the others
    for look in (
        lambda: console.print(status_table(status_of("s", storage))),
        lambda: json.dumps(status_of("s", storage)),
        lambda: table(load_result("s", storage)).to_csv(),
        lambda: resume_arguments("s", storage, {"max_trials": 99}, folder),
    ):
        _unless_refused(look)


def check_short_journal(data: bytes, folder: Path) -> None:
    """Do the same with a good journal that has a bad short one beside it."""
    (folder / "s").mkdir(exist_ok=True)
    (folder / "s" / COMPACT_FILE).write_bytes(data)
    check_journal(_sealed((_EVENTS, -1)), folder)


def check_lock(data: bytes, folder: Path) -> None:
    """Open and close a journal whose lock file holds `data`, and list it."""
    (folder / "s").mkdir(exist_ok=True)
    (folder / "s" / LOCK_FILE).write_bytes(data)
    list_studies(str(folder))
    _unless_refused(lambda: Journal(folder / "s").close())


def check_yaml(data: bytes, folder: Path) -> None:
    """Read a space from YAML, and draw from it."""
    path = folder / "space.yaml"
    path.write_bytes(data)

    def read() -> None:
        space = space_from_yaml(path)
        space.to_json(space.draw(np.random.default_rng(0)))

    _unless_refused(read)


def check_searcher(state: Any, folder: Path) -> None:
    """Restore a searcher of Ray Tune from a state, and save it again."""
    path = folder / "searcher.json"
    path.write_text(json.dumps(state))
    searcher = RayBOSearch()

    def restore() -> None:
        searcher.restore(str(path))
        searcher.save(str(path))

    _unless_refused(restore)


def check_optimizer(state: Any, _: Path) -> None:
    """Restore an optimizer from a state, and save it again."""
    _unless_refused(lambda: json.dumps(Optimizer.from_state(state).state()))


# Kind of file: what is written, and what is done with it.
KINDS: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any, Path], None]]] = {
    "journals": (journals(), check_journal),
    "short journals": (short_journals(), check_short_journal),
    "lock files": (edited([_HOLDER]).map(lambda x: json.dumps(x[:1]).encode()[1:-1]), check_lock),
    "YAML files": (yaml_texts(), check_yaml),
    "conditions": (conditions(), check_yaml),
    "Tune states": (edited(_SEARCHER), check_searcher),
    "optimizer states": (edited(_OPTIMIZER), check_optimizer),
}


@dataclass
class Fuzzed:
    """What came out of many hostile files of a kind."""

    kind: str
    n_files: int = 0
    slowest: float = 0.0  # seconds of CPU time
    errors: Counter[str] = field(default_factory=Counter)  # that are not raybo's, by place


def fuzz(kind: str, examples: int, folder: Path) -> Fuzzed:
    """Try `examples` files of a kind in `folder`."""
    strategy, check = KINDS[kind]
    found = Fuzzed(kind)

    @hypothesis.settings(
        max_examples=examples,
        database=None,
        derandomize=True,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(strategy)
    def try_one(item: Any) -> None:
        gc.disable()  # hypothesis has made most of the garbage
        clock = time.process_time()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Ray's, on domains that it knows to be old
                check(item, folder)
        except Exception as error:  # noqa: BLE001  (this is what is looked for)
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{type(error).__name__}: {str(error)[:80]} ({frame.filename}:{frame.lineno})"
            found.errors[place] += 1
        found.n_files += 1
        found.slowest = max(found.slowest, time.process_time() - clock)
        gc.enable()

    old = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        try_one()
    finally:
        logging.disable(old)
    return found


def _unless_refused(action: Callable[[], Any]) -> None:
    with contextlib.suppress(RayboError):
        action()
