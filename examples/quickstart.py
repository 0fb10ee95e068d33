"""Tune the training of a small network, asynchronously, on all cores of this machine.

The objective is an ordinary function: config in, number out. raybo starts a local Ray, keeps every
worker busy, journals each result, and writes a report.
"""

import argparse

import numpy as np

import raybo
from raybo import Categorical, Float, Int

SPACE = {
    "lr": Float(1e-4, 1.0, log=True),
    "width": Int(4, 128, log=True),
    "act": Categorical(["relu", "tanh"]),
    "decay": Float(1e-6, 1e-1, log=True),
}


def train(config):
    """Validation loss of a two-layer network that learns a spiral; numpy is all it needs."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 3 * np.pi, 600)
    label = np.arange(600) % 2
    points = np.stack(
        [angle * np.cos(angle + np.pi * label), angle * np.sin(angle + np.pi * label)]
    )
    X, y = points.T / 10 + rng.normal(0, 0.03, (600, 2)), 2.0 * label - 1
    W = rng.normal(0, 2, (2, config["width"]))
    b = rng.normal(0, 1, config["width"])
    v = rng.normal(0, 1, config["width"]) / np.sqrt(config["width"])
    for _ in range(300):
        Z = X[:400] @ W + b
        H = np.tanh(Z) if config["act"] == "tanh" else np.maximum(Z, 0)
        error = np.clip(H @ v - y[:400], -5, 5) / 400
        slope = 1 - H**2 if config["act"] == "tanh" else (Z > 0)
        back = error[:, None] * v * slope
        v = v - config["lr"] * (H.T @ error + config["decay"] * v)
        W = W - config["lr"] * (X[:400].T @ back + config["decay"] * W)
        b = b - config["lr"] * back.sum(0)
    Z = X[400:] @ W + b
    H = np.tanh(Z) if config["act"] == "tanh" else np.maximum(Z, 0)
    return float(np.mean((H @ v - y[400:]) ** 2))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=60)
    args = parser.parse_args()
    result = raybo.optimize(train, SPACE, max_trials=args.trials, seed=0)
    print(result)
    result.report("quickstart.html")
    print("report: quickstart.html")
