from __future__ import annotations

import math

import pytest
import torch
from scipy.integrate import quad

from raybo.methods.bock.priors import Gamma, Horseshoe, SpikeAndSlab


def test_priors_are_densities() -> None:
    def mass(prior: Gamma | SpikeAndSlab, low: float, high: float) -> float:
        def density(log_value: float) -> float:  # over the logarithm
            log = torch.tensor(log_value, dtype=torch.float64)
            return math.exp(float(prior.log_density(log)) + log_value)

        return quad(density, low, high, points=[-0.05], limit=200)[0]

    assert mass(Gamma(2.0), -40.0, 5.0) == pytest.approx(1.0, abs=1e-6)
    assert mass(Gamma(3.0), -40.0, 5.0) == pytest.approx(2.0, abs=1e-6)
    slab = SpikeAndSlab(math.log(2.0))
    both = mass(slab, -math.log(2.0), 0.0)  # the spike and the slab, one each
    assert both == pytest.approx(2.0, rel=1e-6)


@pytest.mark.parametrize("ratio", [1e-3, 0.1, 1.0, 30.0])
def test_the_horseshoe_is_the_bound_of_carvalho_polson_and_scott(ratio: float) -> None:
    # A normal density whose scale is half-Cauchy lies between half of the bound and the bound.
    def mixed(log_scale: float) -> float:
        scale = math.exp(log_scale)
        normal = math.exp(-0.5 * (ratio / scale) ** 2) / (scale * math.sqrt(2 * math.pi))
        return normal * 2 / (math.pi * (1 + scale**2)) * scale

    truth = quad(mixed, -20.0, 20.0, points=[math.log(ratio), 0.0], limit=200)[0]
    log_value = torch.tensor(math.log(0.1 * ratio), dtype=torch.float64)
    over_logs = math.exp(float(Horseshoe(0.1).log_density(log_value) + log_value))
    bound = over_logs / math.sqrt(2 * math.pi**3)
    assert truth < bound < 2 * truth
