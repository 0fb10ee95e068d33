"""Ask and tell, without Ray: you run the evaluations, in any order, and the state is JSON."""

import argparse
import json

from raybo import Float, Optimizer


def measure(config):
    """Stand-in for a measurement; its minimum, 0, is at (3.1416, 2.275)."""
    a, b = config["a"], config["b"]
    return (b - 0.1292 * a * a + 1.5915 * a - 6) ** 2 + (a - 3.1416) ** 2


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=30)
    args = parser.parse_args()

    opt = Optimizer({"a": Float(-5, 10), "b": Float(0, 15)}, method="bo", seed=0)
    opt.add({"a": 0.0, "b": 5.0}, value=measure({"a": 0.0, "b": 5.0}))  # what you know already
    running = [opt.ask() for _ in range(3)]  # three at once: each knows of the others
    for i in range(args.trials):
        trial = running.pop(i % len(running))  # they finish in any order
        if i == 4:
            opt.fail(trial.number, "the instrument was off")
        else:
            opt.tell(trial.number, measure(trial.config))
        running.append(opt.ask())

    opt = Optimizer.from_state(json.loads(json.dumps(opt.state())))  # stop here, go on elsewhere
    print(f"best value {opt.best.value:.6f} at {opt.best.config}, {len(opt.trials)} trials")
