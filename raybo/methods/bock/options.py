"""Checks of the options and spaces of both forms of the method."""

from __future__ import annotations

from typing import Any

from raybo.errors import MethodError
from raybo.methods.options import check_choice, check_count, require_ordered
from raybo.space.any_space import AnySpace


def check_options(space: AnySpace, n_init: Any, degree: Any, warp: Any, inference: Any) -> None:
    """Refuse a space without a centre, and options that are not allowed."""
    check_count("n_init", n_init)
    check_count("degree", degree)
    check_choice("warp", warp, (True, False))
    check_choice("inference", inference, ("sample", "map"))
    require_ordered("bock", space, "needs a centre and directions from it")


def refuse_boundary(boundary: Any) -> None:
    """Refuse a datum at the boundary, which only the published form has."""
    check_choice("boundary", boundary, (True, False))
    if boundary:
        raise MethodError(
            "boundary=True (BOCK+B) is a variant of the published algorithm; "
            'give preset="paper" with it, or leave it out'
        )
