"""Pause bad trainings, and go on with those that were good after all: a network with checkpoints.

A training is paused when its curve promises less than most, and goes on from its last checkpoint
when it is among the best third of more trainings. So does one whose worker has died.
"""

import argparse
import uuid
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy

import raybo
from raybo import Categorical, Float, Int

EPOCHS = 30
FOLDER = Path("checkpoints").absolute()  # which all workers see
SPACE = {
    "lr": Float(1e-4, 1.0, log=True),
    "momentum": Float(0, 0.99),
    "batch": Categorical([16, 32, 64, 128]),
    "width": Int(8, 256, log=True),
}


def train(config, resume=None):
    """Yield the loss on 597 digits and a checkpoint after each epoch on the other 1200."""
    X, y = (torch.tensor(part) for part in load_digits(return_X_y=True))
    X, X_valid, y, y_valid = X[:1200].float() / 16, X[1200:].float() / 16, y[:1200], y[1200:]
    layers = torch.nn.Linear(64, config["width"]), torch.nn.Linear(config["width"], 10)
    net = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1])
    optimizer = torch.optim.SGD(net.parameters(), config["lr"], config["momentum"])
    saved = torch.load(resume, weights_only=True) if resume else {"epoch": 0}
    if resume:
        net.load_state_dict(saved["net"])
        optimizer.load_state_dict(saved["optimizer"])
    folder = FOLDER / uuid.uuid4().hex
    folder.mkdir(parents=True)
    for epoch in range(saved["epoch"] + 1, EPOCHS + 1):
        for batch in torch.randperm(len(X)).split(config["batch"]):
            optimizer.zero_grad()
            cross_entropy(net(X[batch]), y[batch]).backward()
            optimizer.step()
        state = {"epoch": epoch, "net": net.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(state, folder / f"{epoch}.pt")
        yield cross_entropy(net(X_valid), y_valid).item(), folder / f"{epoch}.pt"
        (folder / f"{epoch - 1}.pt").unlink(missing_ok=True)  # the new one is in the journal


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=40)
    limits = {"max_trials": parser.parse_args().trials, "max_steps": EPOCHS, "stop_early": True}
    result = raybo.optimize(train, SPACE, seed=0, **limits)
    went_on = [len(trial.curve) for trial in result.trials if trial.attempts > 1]
    print(result)
    print(f"{len(went_on)} trainings were paused and went on, to these epochs: {went_on}")
    print(f"best network: {result.best_trial.checkpoint.path}")
