"""Stop, resume, extend: a study lives in its journal.

Run it twice, or press Ctrl-C in between: nothing that was evaluated is evaluated again.
"""

import argparse
import time

import raybo
from raybo import Float


def objective(config):
    """A slow bowl."""
    time.sleep(0.2)
    return (config["x"] - 0.3) ** 2 + (config["y"] + 0.5) ** 2


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--storage", default="runs")
    args = parser.parse_args()
    study = {
        "space": {"x": Float(-1, 1), "y": Float(-1, 1)},
        "name": "resume-example",
        "storage": args.storage,
        "seed": 0,
    }
    half = raybo.optimize(objective, max_trials=args.trials // 2, **study)
    print(f"half-way: {len(half.trials)} trials, best {half.best_value:.6f}")
    full = raybo.optimize(objective, max_trials=args.trials, **study)  # the same name: it goes on
    print(f"extended: {len(full.trials)} trials, best {full.best_value:.6f}")
    full.report("resume.html")
