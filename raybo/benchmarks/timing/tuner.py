"""One run of Ray Tune, as a user would start it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

from ray import tune


def fit(
    trainable: Callable[[dict[str, Any]], dict[str, float]] | type,
    space: Mapping[str, Any],
    searcher: Any,
    trials: int,
    slots: int | None,
) -> tuple[list[float], float]:
    """Return the losses and the wall time of a run with actors reused.

    Raises
    ------
    RuntimeError
        When a trial is missing, or failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        tuner = tune.Tuner(
            trainable,
            param_space=dict(space),
            tune_config=tune.TuneConfig(
                search_alg=searcher,
                num_samples=trials,
                metric="loss",
                mode="min",
                reuse_actors=True,
                max_concurrent_trials=slots,
            ),
            run_config=tune.RunConfig(storage_path=folder, verbose=0),
        )
        start = time.perf_counter()
        results = tuner.fit()
        wall = time.perf_counter() - start
    if len(results) != trials or results.num_errors:
        raise RuntimeError(f"{len(results)} trials, {results.num_errors} errors: {results.errors}")
    metrics = [results[i].metrics or {} for i in range(trials)]
    return [float(entries["loss"]) for entries in metrics], wall
