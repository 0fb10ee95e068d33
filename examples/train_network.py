"""Train a real network across workers: PyTorch on handwritten digits, seven hyperparameters.

The objective is an ordinary function: config in, number (or dict with the metric) out. raybo
starts a local Ray, keeps every worker busy, journals each result, and writes a report.
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy

import raybo
from raybo import Categorical, Float, Int

SPACE = {
    "lr": Float(1e-4, 1.0, log=True),
    "momentum": Float(0, 0.99),
    "decay": Float(1e-6, 1e-1, log=True),
    "batch": Categorical([16, 32, 64, 128]),
    "width": Int(8, 256, log=True),
    "layers": Int(1, 3),
    "dropout": Float(0, 0.7),
}


def train(config):
    """Validation loss and accuracy on 597 digits after six epochs on the other 1200."""
    torch.manual_seed(0)
    X, y = (torch.tensor(part) for part in load_digits(return_X_y=True))
    X, X_valid, y, y_valid = X[:1200].float() / 16, X[1200:].float() / 16, y[:1200], y[1200:]
    layers, width = [], 64
    for _ in range(config["layers"]):
        layers += [torch.nn.Linear(width, config["width"]), torch.nn.ReLU()]
        layers += [torch.nn.Dropout(config["dropout"])]
        width = config["width"]
    net = torch.nn.Sequential(*layers, torch.nn.Linear(width, 10))
    named = {"lr": config["lr"], "momentum": config["momentum"], "weight_decay": config["decay"]}
    optimizer = torch.optim.SGD(net.parameters(), **named)
    for _ in range(6):
        for batch in torch.randperm(len(X)).split(config["batch"]):
            optimizer.zero_grad()
            cross_entropy(net(X[batch]), y[batch]).backward()
            optimizer.step()
    scores = net.eval()(X_valid)
    accuracy = (scores.argmax(1) == y_valid).float().mean()
    return {"loss": cross_entropy(scores, y_valid).item(), "accuracy": accuracy.item()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=40)
    trials = parser.parse_args().trials
    result = raybo.optimize(train, SPACE, metric="loss", max_trials=trials, timeout=120, seed=0)
    print(result)
    print(f"accuracy of the best network: {result.best_trial.extra['accuracy']:.3f}")
    result.report("train_network.html")
    print("report: train_network.html")
