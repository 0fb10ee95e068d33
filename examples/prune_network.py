"""Prune a trained network: for each layer a way to shrink it and how much, then train on.

The space is conditional: only the parameters of the chosen branch exist in a config. Method
`addtree` models what the branches share, so that a result in one teaches it about the others.
"""

import argparse
from copy import deepcopy
from functools import partial

import torch
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy
from torch.nn.utils.prune import l1_unstructured, ln_structured

import raybo
from raybo import Choice, Float

GONE = {"share": Float(0, 0.99)}
WAYS = Choice({"weights": GONE, "neurons": GONE, "none": {}})
SPACE = {"layer1": WAYS, "layer2": WAYS, "lr": Float(1e-4, 1e-1, log=True)}


def train(net, lr, epochs):
    """Validation accuracy after some epochs of Adam on 1200 digits."""
    torch.manual_seed(0)
    X, y = (torch.tensor(part) for part in load_digits(return_X_y=True))
    X, optimizer = X.float() / 16, torch.optim.Adam(net.parameters(), lr)
    for _ in range(epochs):
        for batch in torch.randperm(1200).split(64):
            optimizer.zero_grad()
            cross_entropy(net(X[batch]), y[batch]).backward()
            optimizer.step()
    return (net(X[1200:]).argmax(1) == y[1200:]).float().mean().item()


def prune(trained, config):
    """Accuracy after pruning and one more epoch, plus the share of weights that are gone."""
    net = deepcopy(trained)
    for layer, name in ((net[0], "layer1"), (net[2], "layer2")):
        if "weights" in config[name]:
            l1_unstructured(layer, "weight", config[name]["weights"]["share"])
        elif "neurons" in config[name]:
            ln_structured(layer, "weight", config[name]["neurons"]["share"], n=2, dim=0)
    accuracy = train(net, config["lr"], epochs=1)  # pruned weights stay 0
    gone = sum((layer.weight == 0).sum().item() for layer in net[::2]) / (2 * 64 + 10) / 64
    return {"score": accuracy + gone, "accuracy": accuracy, "gone": gone}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=60)
    n = parser.parse_args().trials
    torch.manual_seed(0)
    first, second, third = (torch.nn.Linear(64, width) for width in (64, 64, 10))
    net = torch.nn.Sequential(first, torch.nn.ReLU(), second, torch.nn.ReLU(), third)
    print(f"trained network: accuracy {train(net, lr=3e-3, epochs=20):.3f}")
    result = raybo.optimize(partial(prune, net), SPACE, "max", "score", "addtree", max_trials=n)
    result.report("prune_network.html")
    print(result, "report: prune_network.html", sep="\n")
