"""A conditional space: each layer of a model is compressed by one of two methods.

Only the parameters of the chosen branch exist in a config. Method `addtree` models what the
branches share, so that an evaluation of one teaches it about the others.
"""

import argparse

import raybo
from raybo import Choice, Float, Int


def layer():
    """Parameters of one layer: a truncated SVD of some rank, or weights below a threshold cut."""
    return Choice({"svd": {"rank": Int(2, 200)}, "l1": {"threshold": Float(0, 1)}})


SPACE = {"layer1": layer(), "layer2": layer(), "finetune": Float(1e-5, 1e-1, log=True)}


def compress(config):
    """Stand-in for compressing and fine-tuning a network: error plus size, 0.35 at best."""
    loss = (config["finetune"] ** 0.25 - 0.25) ** 2
    for name, best_rank in (("layer1", 60), ("layer2", 30)):
        ((method, chosen),) = config[name].items()
        if method == "svd":
            loss += 0.15 + (chosen["rank"] / 200 - best_rank / 200) ** 2
        else:
            loss += 0.30 + (chosen["threshold"] - 0.4) ** 2
    return {
        "loss": loss + 0.05,
        "methods": "-".join(next(iter(config[k])) for k in ("layer1", "layer2")),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=50)
    args = parser.parse_args()
    result = raybo.optimize(
        compress, SPACE, metric="loss", method="addtree", max_trials=args.trials, seed=0
    )
    print(result)
    result.report("conditional_space.html")
    print("report: conditional_space.html, with the evaluations per branch")
