"""What a function does, as text: equal for equal code, wherever it stands."""

from __future__ import annotations

from types import CodeType
from typing import Any


def code_text(code: CodeType) -> str:
    """Return what `code` does, without comments and the places in files that a repr has."""
    constants = [_constant_text(constant) for constant in code.co_consts]
    return repr((code.co_code.hex(), constants, code.co_names))


def _constant_text(constant: Any) -> str:
    if isinstance(constant, CodeType):
        return code_text(constant)
    if isinstance(constant, frozenset):  # in an order that differs from process to process
        return str(sorted(map(repr, constant)))
    return repr(constant)
