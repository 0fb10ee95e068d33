"""Stop, resume, extend: a study lives in its journal.

Run it twice, or press Ctrl-C in between: nothing that was evaluated is evaluated again.
"""

import argparse

from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import raybo
from raybo import Choice, Float, Int

KERNELS = {"rbf": {"gamma": Float(1e-5, 1.0, log=True)}, "poly": {"degree": Int(1, 5)}}
SPACE = {"C": Float(1e-3, 1e3, log=True), "kernel": Choice(KERNELS)}


def error(config):
    """Cross-validated error of a support vector machine on handwritten digits."""
    X, y = load_digits(return_X_y=True)
    [(kernel, own)] = config["kernel"].items()
    model = make_pipeline(StandardScaler(), SVC(C=config["C"], kernel=kernel, **own))
    return 1.0 - cross_val_score(model, X[:900], y[:900], cv=3).mean()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--storage", default="runs")
    args = parser.parse_args()
    study = {"name": "resume-example", "storage": args.storage, "method": "addtree", "seed": 0}
    half = raybo.optimize(error, SPACE, max_trials=args.trials // 2, **study)
    print(f"half-way: {len(half.trials)} trials, best {half.best_value:.4f}")
    full = raybo.optimize(
        error, SPACE, max_trials=args.trials, **study
    )  # the same name: it goes on
    print(f"extended: {len(full.trials)} trials, best {full.best_value:.4f} at {full.best_config}")
    full.report("resume.html")
    print("report: resume.html")
