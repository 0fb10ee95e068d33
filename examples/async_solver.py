"""Tune a program that runs elsewhere: an `async def` objective starts it and waits.

The program is simulated annealing on a tour of 40 cities, here a subprocess with a time limit; a
job of a batch system or a web service is waited for in the same way. Waiting takes no worker
process: a few of them hold all evaluations in flight, by the hundred if the cluster that does the
work has room. A trial that is cancelled kills its program.
"""

import argparse
import asyncio
import json
import sys

import raybo
from raybo import Categorical, Float, Int

SOLVER = """
import json, math, random, sys
config = json.loads(sys.argv[1])
rng = random.Random(0)
cities = [complex(rng.random(), rng.random()) for _ in range(40)]
length = lambda tour: sum(abs(cities[a] - cities[b]) for a, b in zip(tour, tour[1:] + tour[:1]))
tour, heat = list(range(40)), config["heat"]
now = best = length(tour)
for step in range(config["steps"]):
    i, j = sorted(rng.sample(range(40), 2))
    middle = tour[i:j + 1][::-1] if config["move"] == "reverse" else tour[j:j + 1] + tour[i:j]
    new = tour[:i] + middle + tour[j + 1:]
    longer = length(new) - now
    if longer < 0 or rng.random() < math.exp(-longer / max(heat, 1e-12)):
        tour, now = new, now + longer
        best = min(best, now)
    heat *= config["cooling"]
print(best)
"""
SPACE = {
    "heat": Float(1e-3, 10.0, log=True),
    "cooling": Float(0.9, 1.0),
    "steps": Int(1000, 4000, log=True),
    "move": Categorical(["reverse", "shift"]),
}


async def tour_length(config):
    """Return the length of the tour that the solver finds with this config."""
    arguments = [sys.executable, "-c", SOLVER, json.dumps(config)]
    solver = await asyncio.create_subprocess_exec(*arguments, stdout=asyncio.subprocess.PIPE)
    try:
        output, _ = await solver.communicate()
    finally:
        if solver.returncode is None:
            solver.kill()
    return float(output)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=60)
    limits = {"max_trials": parser.parse_args().trials, "workers": 8, "timeout": 60}
    print(raybo.optimize(tour_length, SPACE, seed=0, **limits))
