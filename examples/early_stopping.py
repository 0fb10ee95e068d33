"""Stop bad trainings early: a network that yields its loss after every epoch.

raybo compares trainings at a few epochs by what their curves promise, stops two of three, and
learns from the curves of all. `finally` runs in a training that is stopped, too.
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy

import raybo
from raybo import Categorical, Float, Int

EPOCHS = 30
SPACE = {
    "lr": Float(1e-4, 1.0, log=True),
    "momentum": Float(0, 0.99),
    "decay": Float(1e-6, 1e-1, log=True),
    "batch": Categorical([16, 32, 64, 128]),
    "width": Int(8, 256, log=True),
    "dropout": Float(0, 0.7),
}


def train(config):
    """Yield validation loss and accuracy on 597 digits after each epoch on the other 1200."""
    torch.manual_seed(0)
    X, y = (torch.tensor(part) for part in load_digits(return_X_y=True))
    X, X_valid, y, y_valid = X[:1200].float() / 16, X[1200:].float() / 16, y[:1200], y[1200:]
    hidden = [torch.nn.Linear(64, config["width"]), torch.nn.ReLU()]
    output = [torch.nn.Dropout(config["dropout"]), torch.nn.Linear(config["width"], 10)]
    net = torch.nn.Sequential(*hidden, *output)
    named = {"lr": config["lr"], "momentum": config["momentum"], "weight_decay": config["decay"]}
    optimizer = torch.optim.SGD(net.parameters(), **named)
    for _ in range(EPOCHS):
        net.train()
        for batch in torch.randperm(len(X)).split(config["batch"]):
            optimizer.zero_grad()
            cross_entropy(net(X[batch]), y[batch]).backward()
            optimizer.step()
        scores = net.eval()(X_valid)
        accuracy = (scores.argmax(1) == y_valid).float().mean()
        yield {"loss": cross_entropy(scores, y_valid).item(), "accuracy": accuracy.item()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=40)
    limits = {"max_trials": parser.parse_args().trials, "timeout": 120}
    steps = {"max_steps": EPOCHS, "stop_early": True}
    result = raybo.optimize(train, SPACE, metric="loss", seed=0, **limits, **steps)
    epochs = sum(len(trial.curve) for trial in result.trials)
    print(result)
    print(f"accuracy of the best network: {result.best_trial.extra['accuracy']:.3f}")
    print(f"epochs trained: {epochs} of {EPOCHS * len(result.trials)}")
    result.report("early_stopping.html")
