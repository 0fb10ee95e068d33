"""Add-Tree's tables and figures: Ma & Blaschko (2021), Figures 4a, 4c and Table 1."""

from __future__ import annotations

from raybo.benchmarks.tables.base import Block, Published, Task

_ADDTREE = ("addtree", "addtree:expand=true", "addtree:preset=paper")
_CONDITIONAL = ("independent-gps", "bo", "random", "hyperopt", "optuna-tpe", "smac")


def addtree_synthetic() -> Task:
    """Return Figure 4a and Table 1 on the Jenatton function."""
    return Task(
        "addtree-synthetic",
        "Add-Tree, Figure 4a and Table 1: the Jenatton function; there p <= 0.03 against smac, "
        "tpe and random at 40 evaluations and 0.003 at 60 and 80",
        (Block(("jenatton",), ("addtree", "addtree:preset=paper", *_CONDITIONAL), 80),),
        seeds=10,
        reference="addtree",
        cost="30 core-minutes, most of it smac's",
        quantity="regret",
        published=(Published("jenatton", "addtree:preset=paper", 30, 1e-4),),  # a bound
    )


def addtree_fc3() -> Task:
    """Return Figure 4c and Table 1 on compressing a network."""
    return Task(
        "addtree-fc3",
        "Add-Tree, Figure 4c and Table 1: compressing a 784-1000-1000-10 network; there "
        "p <= 0.04 against smac, tpe and random at 60 evaluations",
        (Block(("fc3",), (*_ADDTREE, *_CONDITIONAL), 80),),
        seeds=10,
        reference="addtree",
        cost="30 core-minutes, most of it smac's",
    )


def addtree_blocks() -> Task:
    """Return the comparison of shared subtrees with the expansion of section 5.3."""
    return Task(
        "addtree-blocks",
        "three independent blocks, as in pruning VGG16: shared subtrees against the expansion of "
        "Add-Tree, section 5.3",
        (Block(("blocks", "blocks-hartmann"), (*_ADDTREE, "optuna-tpe", "random"), 120),),
        seeds=10,
        reference="addtree",
        cost="40 core-minutes",
        quantity="regret",
    )
