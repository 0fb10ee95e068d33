"""A small study on whatever Ray cluster is there: checks that every result arrives, once.

    python cluster/smoke.py [--trials 60] [--nodes 2] [--storage runs] [--name NAME]

Uses the cluster of RAY_ADDRESS, or the one this machine belongs to, or else a local Ray. Exits
with 1 when a trial is missing, doubled or failed, when fewer nodes than --nodes took part, or
when the journal does not say what the study returned.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from typing import Any

import ray

import raybo
from raybo import Float, Int, Space
from raybo.result import load_result


def objective(config: dict[str, Any]) -> dict[str, Any]:
    """A paraboloid, and the node that computed it."""
    time.sleep(0.2)
    loss = (config["x"] - 0.3) ** 2 + 0.01 * abs(config["n"] - 7)
    return {"loss": loss, "node": ray.get_runtime_context().get_node_id()}


def troubles(result: Any, again: Any, trials: int, nodes: int) -> list[str]:
    """What is wrong, in words."""
    found = []
    numbers = [trial.number for trial in result.trials]
    if sorted(numbers) != list(range(trials)):
        found.append(f"{trials} trials were wanted, the numbers of those there are {numbers}")
    found += [f"trial {t.number}: {t.state}: {t.reason}" for t in result.trials if t.value is None]
    used = {trial.extra.get("node") for trial in result.trials}
    if len(used) < nodes:
        found.append(f"{len(used)} of {nodes} nodes took part")
    if [(t.number, t.value) for t in again.trials] != [(t.number, t.value) for t in result.trials]:
        found.append("the journal differs from the result")
    return found


def main() -> int:
    """Run the study and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--nodes", type=int, default=1, help="nodes that must take part")
    parser.add_argument("--storage", default="runs", help="a folder all nodes share, or a URI")
    parser.add_argument("--name", default=None, help="give one to be able to resume")
    args = parser.parse_args()

    space = Space({"x": Float(0, 1), "n": Int(1, 20)})
    result = raybo.optimize(
        objective,
        space,
        metric="loss",
        method="random",
        max_trials=args.trials,
        storage=args.storage,
        name=args.name,
    )
    again = load_result(result.name, args.storage)

    hosts = {node["NodeID"]: node["NodeManagerHostname"] for node in ray.nodes()}
    counts = Counter(trial.extra.get("node", "unknown") for trial in result.trials)
    print(f"{len(result.trials)} trials on {len(counts)} nodes, best {result.best_value:.4g}")
    for node, count in counts.most_common():
        print(f"  {hosts.get(node, 'gone')}  {node[:12]}  {count} trials")
    found = troubles(result, again, args.trials, args.nodes)
    for trouble in found:
        print(f"TROUBLE: {trouble}", file=sys.stderr)
    print("smoke test passed" if not found else "smoke test FAILED")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
