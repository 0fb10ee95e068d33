"""A billion dimensions, of which two matter: method bins, which `auto` leaves such a box to.

config["x"] is a lazy vector: reading two of its coordinates costs microseconds, and nothing of
length 10^9 is ever made.
"""

import argparse
import math

import raybo

DIM = 10**9


def objective(config):
    """Branin's function of coordinates 17 and 123,456,789; its minimum is 0.397887."""
    x = config["x"]
    a, b = 2.5 + 7.5 * x[17], 7.5 + 7.5 * x[123_456_789]
    bend = b - 5.1 / (4 * math.pi**2) * a * a + 5 / math.pi * a - 6
    return bend**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(a) + 10


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=200)
    args = parser.parse_args()
    result = raybo.optimize(
        objective,
        raybo.Box(DIM, low=-1.0, high=1.0),
        method="bins",
        max_trials=args.trials,
        seed=0,
    )
    print(result)
    print(f"gap to the optimum: {result.best_value - 0.397887:.6f}")
