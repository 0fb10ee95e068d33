"""Deaths: when to stop replacing a process that keeps dying."""

from __future__ import annotations

# In a row: a killed process or a short shortage of memory passes; what kills five kills the sixth.
MAX_DEATHS = 5


class Deaths:
    """Counts the deaths of a process and its replacements since their last answer of use."""

    def __init__(self) -> None:
        self.count = 0

    def add(self) -> bool:
        """Count one more death; return whether to replace the process again."""
        self.count += 1
        return self.count < MAX_DEATHS

    def reset(self) -> None:
        """Start from zero: the process has answered."""
        self.count = 0
