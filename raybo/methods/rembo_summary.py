"""What became of each embedding: for reports and live views, which load no torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol


class Evaluated(Protocol):
    """What is needed of a trial."""

    number: int
    value: float | None
    reason: str | None
    memo: dict[str, Any]


@dataclass(frozen=True)
class EmbeddingSummary:
    """Figures of one embedding; values are the user's own."""

    lane: int
    evaluations: int  # trials with a value
    failed: int
    best: float | None
    clipped: float | None  # mean share of the coordinates that were clipped, in [0, 1]


def embeddings(
    trials: Iterable[Evaluated], k: int, loss: Callable[[float], float] = float
) -> list[EmbeddingSummary]:
    """Summary of each of the k embeddings.

    Parameters
    ----------
    trials
        Of one study; those without a memo are counted with the lane of their number.
    k
        Number of embeddings.
    loss
        Smaller is better: `Objective.loss` of the study, needed where it maximises.
    """
    lanes: list[list[Evaluated]] = [[] for _ in range(k)]
    for trial in trials:
        lanes[trial.number % k].append(trial)
    return [_summary(lane, own, loss) for lane, own in enumerate(lanes)]


def _summary(
    lane: int, trials: list[Evaluated], loss: Callable[[float], float]
) -> EmbeddingSummary:
    values = [t.value for t in trials if t.value is not None]
    shares = [share for t in trials if (share := _clipped(t.memo)) is not None]
    return EmbeddingSummary(
        lane=lane,
        evaluations=len(values),
        failed=sum(t.value is None and t.reason is not None for t in trials),
        best=min(values, key=loss, default=None),
        clipped=sum(shares) / len(shares) if shares else None,
    )


def _clipped(memo: Mapping[str, Any]) -> float | None:
    share = memo.get("clipped")
    return None if share is None else float(share)
