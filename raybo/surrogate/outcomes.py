"""Standardised losses with compressed tails."""

from __future__ import annotations

import numpy as np

from raybo.arrays import Array

# In interquartile ranges from the median: where compression begins and the room left beyond it.
Tail = tuple[float, float]
WIDE_TAIL: Tail = (5.0, 5.0)
SHORT_TAIL: Tail = (0.5, 1.0)
_GOOD_SIDE: Tail = (20.0, 20.0)


def standardize(loss: Array, bad_side: Tail = WIDE_TAIL) -> Array:
    """Losses (n,) centred and scaled to unit variance, their far tails compressed.

    The order of the losses is kept. Values far beyond the quartiles are drawn in smoothly, sooner
    on the bad side than on the good one, so that one value of 1e300 leaves the others apart.
    Equal losses all become 0.
    """
    loss = np.clip(np.asarray(loss, dtype=np.float64), -1e307, 1e307)  # differences stay finite
    centre = np.median(loss)
    low, high = np.quantile(loss, [0.25, 0.75], method="lower")
    spread = high - low
    if not spread > 1e-13 * abs(centre):
        spread = loss.max() - loss.min()
    if not spread > 1e-13 * abs(centre):
        return np.zeros_like(loss)
    with np.errstate(over="ignore"):
        z = np.clip((loss - centre) / spread, -1e9, 1e9)
    z = np.where(z > 0, _compress(z, *bad_side), -_compress(-z, *_GOOD_SIDE))
    z = z - z.mean()
    deviation = float(z.std())
    return z / deviation if deviation > 0 else np.zeros_like(z)


def _compress(z: Array, limit: float, room: float) -> Array:
    """The identity up to `limit`, then increasing towards `limit + room`."""
    beyond = np.maximum(z - limit, 0.0)
    return np.minimum(z, limit) + beyond / (1.0 + beyond / room)


def yeo_johnson(y: Array, power: float) -> tuple[Array, Array]:
    """Losses under a power transform, and the logarithms of its slopes.

    Parameters
    ----------
    y
        Standardised losses (n,).
    power
        1 changes nothing; below 1 compresses the bad side and stretches the good side.

    Returns
    -------
    tuple
        Transformed losses (n,), standardised again, and log slopes (n,): their sum, added to the
        log likelihood of the transformed losses, makes it comparable with that of another power.

    Notes
    -----
    Yeo & Johnson (2000), eq. 2.1: ((1 + y)^p - 1) / p for y >= 0, which is log(1 + y) at p = 0,
    and -((1 - y)^q - 1) / q with q = 2 - p for y < 0.
    """
    if power == 1.0:
        return y, np.zeros_like(y)
    up, down, q = np.maximum(y, 0.0), np.maximum(-y, 0.0), 2.0 - power
    risen = np.log1p(up) if power == 0.0 else np.expm1(power * np.log1p(up)) / power
    bent = risen - np.expm1(q * np.log1p(down)) / q
    bent = bent - bent.mean()
    deviation = float(bent.std())
    if not deviation > 0:
        return y, np.zeros_like(y)
    slopes = (power - 1.0) * np.sign(y) * np.log1p(np.abs(y)) - np.log(deviation)
    return bent / deviation, slopes
