"""Tune a small network on handwritten digits: Ray Tune, early stopping by ASHA, raybo's search.

python examples/ray_tune.py --trials 20
"""

import argparse

import torch
from ray import tune
from ray.tune.schedulers import ASHAScheduler
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy

from raybo.tune import RayBOSearch


def train(config: dict) -> None:
    """Train a network and report its validation loss after each epoch."""
    torch.manual_seed(0)
    X, y = (torch.tensor(a) for a in load_digits(return_X_y=True))
    X, X_valid, y, y_valid = X[:1200].float(), X[1200:].float(), y[:1200], y[1200:]
    layers, width = [torch.nn.BatchNorm1d(64)], 64
    for _ in range(config["net"]["layers"]):
        layers += [torch.nn.Linear(width, config["net"]["width"]), torch.nn.ReLU()]
        width = config["net"]["width"]
    net = torch.nn.Sequential(*layers, torch.nn.Linear(width, 10))
    if config["optimizer"]["name"] == "sgd":
        momentum = config["optimizer"]["momentum"]
        optimizer = torch.optim.SGD(net.parameters(), lr=config["lr"], momentum=momentum)
    else:
        optimizer = torch.optim.Adam(net.parameters(), lr=config["lr"])
    for _ in range(20):
        net.train()
        for batch in torch.randperm(len(X)).split(64):
            optimizer.zero_grad()
            cross_entropy(net(X[batch]), y[batch]).backward()
            optimizer.step()
        net.eval()
        tune.report({"loss": cross_entropy(net(X_valid), y_valid).item()})


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=20)
    sgd = {"name": "sgd", "momentum": tune.uniform(0, 1)}
    space = {
        "lr": tune.loguniform(1e-4, 1.0),
        "net": {"layers": tune.randint(1, 4), "width": tune.lograndint(8, 257)},
        "optimizer": tune.choice([{"name": "adam"}, sgd]),  # momentum exists only for sgd
    }
    tune_config = tune.TuneConfig(
        metric="loss", mode="min", num_samples=parser.parse_args().trials, reuse_actors=True,
        search_alg=RayBOSearch(method="bo"), scheduler=ASHAScheduler(max_t=20, grace_period=2),
    )  # fmt: skip
    results = tune.Tuner(train, param_space=space, tune_config=tune_config).fit()
    best = results.get_best_result()
    print(f"best loss {best.metrics['loss']:.4f} with {best.config}")
    results.get_dataframe().sort_values("loss").to_html("ray_tune.html")
    print("report: ray_tune.html")
