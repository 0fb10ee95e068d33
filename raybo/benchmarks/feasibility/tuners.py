"""raybo's methods and the tuners of other tools, told of failures and of bounded outcomes.

Each tool is told of a failed trial in the way that its documentation has for it. The packages of
the peers are imported on first use: they need not be installed.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from raybo.benchmarks.feasibility.problems import Config, Evaluation, Task
from raybo.benchmarks.problems.base import BenchmarkError
from raybo.benchmarks.tuners.base import parse_spec
from raybo.benchmarks.tuners.columns import Flat
from raybo.benchmarks.tuners.registry import check_tuner
from raybo.methods.registry import METHODS
from raybo.study.optimizer import Optimizer
from raybo.study.trial import Trial


class Tuner(Protocol):
    """A search that has one trial in flight."""

    def ask(self) -> Config:
        """Return the next config to evaluate."""

    def tell(self, found: Evaluation) -> None:
        """Add what became of it."""


class Own:
    """A method of raybo, through its Optimizer."""

    _trial: Trial

    def __init__(self, task: Task, seed: int, method: str, **options: Any) -> None:
        self._names = [f"outcome {i}" for i in range(task.n_bounds)]
        bounds = dict.fromkeys(self._names, (None, 0.0))
        self._optimizer = Optimizer(task.space, method, seed=seed, constraints=bounds, **options)

    def ask(self) -> Config:
        """Return the next config to evaluate."""
        self._trial = self._optimizer.ask()
        return self._trial.config

    def tell(self, found: Evaluation) -> None:
        """Add what became of it."""
        if found.value is None:
            self._optimizer.fail(self._trial, "failed")
        else:
            extra = dict(zip(self._names, found.excess, strict=True))
            self._optimizer.tell(self._trial, found.value, extra)


class Optuna:
    """Optuna's GP or TPE: failed trials are told as such, outcomes by `constraints_func`."""

    _trial: Any

    def __init__(self, task: Task, seed: int, sampler: str) -> None:
        import optuna  # noqa: PLC0415

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._flat, self._failed = Flat(task.space), optuna.trial.TrialState.FAIL
        options: dict[str, Any] = {"seed": seed}
        if task.n_bounds:
            options["constraints_func"] = lambda trial: trial.user_attrs["excess"]
        if sampler == "gp":
            build, options["deterministic_objective"] = optuna.samplers.GPSampler, True
        else:
            build = optuna.samplers.TPESampler
        self._study = optuna.create_study(sampler=build(**options))

    def ask(self) -> Config:
        """Return the next config to evaluate."""
        from raybo.benchmarks.tuners.optuna import suggested_config  # noqa: PLC0415

        self._trial = self._study.ask()
        return suggested_config(self._trial, self._flat)

    def tell(self, found: Evaluation) -> None:
        """Add what became of it."""
        if found.value is None:
            self._study.tell(self._trial, state=self._failed)
        else:
            self._trial.set_user_attr("excess", found.excess)
            self._study.tell(self._trial, found.value)


class Smac:
    """SMAC3's facade for hyperparameter optimisation: failed trials are told as crashed.

    A crashed trial has the worst value so far, and is told when there is one: SMAC's default,
    infinity, ends in an error of its forest. It has no constraints.
    """

    _info: Any

    def __init__(self, task: Task, seed: int) -> None:
        from smac import HyperparameterOptimizationFacade, Scenario  # noqa: PLC0415

        from raybo.benchmarks.tuners.smac import config_space  # noqa: PLC0415

        if task.n_bounds:
            raise BenchmarkError("smac has no constraints on outcomes; leave it out")
        self._flat = Flat(task.space)
        self._values: list[float] = []
        self._crashed: list[Any] = []  # not told yet
        self._folder = tempfile.TemporaryDirectory(prefix="raybo-smac-")
        scenario = Scenario(
            config_space(self._flat.dimensions, seed),
            deterministic=True,
            n_trials=10 * task.length,
            seed=seed,
            output_directory=Path(self._folder.name),
        )
        design = HyperparameterOptimizationFacade.get_initial_design(
            scenario, n_configs=max(task.length // 4, 1)
        )
        self._smac = HyperparameterOptimizationFacade(
            scenario, _unused, initial_design=design, overwrite=True, logging_level=False
        )

    def ask(self) -> Config:
        """Return the next config to evaluate."""
        self._info = self._smac.ask()
        return self._flat.config(dict(self._info.config))

    def tell(self, found: Evaluation) -> None:
        """Add what became of it."""
        from smac.runhistory.dataclasses import TrialValue  # noqa: PLC0415
        from smac.runhistory.enumerations import StatusType  # noqa: PLC0415

        if found.value is None:
            self._crashed.append(self._info)
        else:
            self._values.append(found.value)
            self._smac.tell(self._info, TrialValue(cost=found.value), save=False)
        if self._values:
            worst = TrialValue(cost=max(self._values), status=StatusType.CRASHED)
            for info in self._crashed:
                self._smac.tell(info, worst, save=False)
            self._crashed.clear()


class Botorch:
    """BoTorch's log expected improvement under constraints, after ten points of Sobol.

    Objective and outcomes have a SingleTaskGP each, on standardised values, with the search of
    `optimize_acqf` as in its tutorials. Where no trial is allowed yet, the probability that all
    bounds are kept is maximised. It has no way to be told of failures.
    """

    _row: Any

    def __init__(self, task: Task, seed: int, n_init: int = 10) -> None:
        if not task.n_bounds:
            raise BenchmarkError("botorch is run on constraints only; leave it out")
        self._task, self._seed, self._n_init = task, seed, n_init
        self._rows: list[Any] = []
        self._found: list[Evaluation] = []

    def ask(self) -> Config:
        """Return the next config to evaluate."""
        from scipy.stats import qmc  # noqa: PLC0415

        n = len(self._rows)
        if n < self._n_init:
            sobol = qmc.Sobol(self._task.space.dim, rng=np.random.default_rng(self._seed))
            self._row = sobol.random_base2(10)[n]
        else:
            self._row = self._candidate()
        self._row = self._task.space.snap(self._row[None])[0]
        return self._task.space.decode(self._row)

    def tell(self, found: Evaluation) -> None:
        """Add what became of it."""
        self._rows.append(self._row)
        self._found.append(found)

    def _candidate(self) -> Any:
        import torch  # noqa: PLC0415
        from botorch.acquisition.analytic import (  # noqa: PLC0415
            LogConstrainedExpectedImprovement,
            LogProbabilityOfFeasibility,
        )
        from botorch.fit import fit_gpytorch_mll  # noqa: PLC0415
        from botorch.models import SingleTaskGP  # noqa: PLC0415
        from botorch.optim.optimize import optimize_acqf  # noqa: PLC0415
        from gpytorch.mlls import ExactMarginalLogLikelihood  # noqa: PLC0415

        X = torch.tensor(np.array(self._rows), dtype=torch.float64)
        Y = torch.tensor([[-(e.value or 0.0), *e.excess] for e in self._found]).double()
        model = SingleTaskGP(X, Y)  # a process for each outcome, in one batch
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        allowed = [e.allowed for e in self._found]
        bounds = dict.fromkeys(range(1, Y.shape[1]), (None, 0.0))
        if any(allowed):
            best = Y[allowed, 0].max()
            f: Any = LogConstrainedExpectedImprovement(model, best, 0, bounds, maximize=True)
        else:
            f = LogProbabilityOfFeasibility(model, bounds)
        torch.manual_seed(self._seed * 1_000_003 + len(X))  # it draws from the global generator
        unit = torch.stack([torch.zeros_like(X[0]), torch.ones_like(X[0])])
        row, _ = optimize_acqf(f, unit, q=1, num_restarts=10, raw_samples=512)
        return row[0].numpy()


PEERS: dict[str, Callable[[Task, int], Tuner]] = {
    "optuna-gp": lambda task, seed: Optuna(task, seed, "gp"),
    "optuna-tpe": lambda task, seed: Optuna(task, seed, "tpe"),
    "smac": Smac,
    "botorch": Botorch,
}


def build(spec: str, task: Task, seed: int) -> Tuner:
    """Return the tuner of a spec: a peer, or a method of raybo with options (`rembo:d=2`)."""
    if spec in PEERS:
        check_tuner(spec)  # its package may not be installed
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that something is experimental
            return PEERS[spec](task, seed)
    name, options = parse_spec(spec)
    if name not in METHODS:
        raise BenchmarkError(
            f"there is no tuner {name!r}; there are {', '.join([*METHODS, *PEERS])}"
        )
    return Own(task, seed, name, **options)


def _unused(config: Any, seed: int = 0) -> float:  # noqa: ARG001  (SMAC checks the signature)
    """Stand in for the target function, which ask and tell never call."""
    return 0.0
