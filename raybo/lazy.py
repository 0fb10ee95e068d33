"""torch, loaded when it is first used, and all that models need, loaded ahead.

It takes seconds to import, and the first points of a study need no model: a study starts without
it. Type checkers see torch itself.
"""

from __future__ import annotations

import importlib
import threading
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch as torch
    from torch import Tensor as Tensor
else:
    Tensor = Any  # only in annotations

    class _Torch(ModuleType):
        """Gets each name from torch when it is first asked for."""

        def __getattr__(self, name: str) -> Any:
            value = getattr(importlib.import_module("torch"), name)
            setattr(self, name, value)
            return value

    torch = _Torch("torch")


def load_libraries() -> None:
    """Load now what models need, so that the first of them need not wait for it.

    The first points of a study need scipy only, so torch is loaded in the background. A package
    that two threads import at once may be found half loaded: scipy's are not.
    """
    for name in ("scipy.linalg", "scipy.optimize", "scipy.stats"):
        importlib.import_module(name)
    threading.Thread(target=importlib.import_module, args=["torch"], daemon=True).start()
