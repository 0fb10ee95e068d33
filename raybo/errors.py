"""The errors raybo raises: each says what was given, what is allowed and what to do."""

from __future__ import annotations


class RayboError(Exception):
    """Base of every error raised on purpose by raybo."""


class SpaceError(RayboError, ValueError):
    """A search space, or a config of one, is not valid."""


class SpaceExhausted(RayboError, RuntimeError):  # noqa: N818  (a state of the space, not a fault)
    """Every point of a finite space has been tried."""


class MethodError(RayboError, ValueError):
    """A method, or one of its options, is not known or not valid."""


class SurrogateError(RayboError, ArithmeticError):
    """A surrogate model could not be computed."""


class StudyError(RayboError, ValueError):
    """A study was used in a way that its state does not allow."""


class ObjectiveError(RayboError, ValueError):
    """An objective returned something that is not a finite number."""


class MetricError(ObjectiveError):
    """An objective returned a dict without the metric: every trial would."""


class JournalError(RayboError, RuntimeError):
    """A journal is damaged, or belongs to another study or writer."""


class StudyFailed(RayboError, RuntimeError):  # noqa: N818  (reads as the outcome it is)
    """A study was stopped because going on could not help."""


# What code raises that meets data of the wrong shape: a file that raybo did not write.
MALFORMED = (
    *(KeyError, IndexError, TypeError, ValueError, AttributeError),
    *(OverflowError, RecursionError),
)
