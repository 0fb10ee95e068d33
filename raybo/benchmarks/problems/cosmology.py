"""Likelihood of a cosmology under Planck's spectra and SDSS's acoustic scales: 9 parameters in 40.

RPP, section 5.2, maximises the likelihood of red galaxies of SDSS in nine parameters; with dummies
there are 40, mixed by I + S, S uniform in [-0.1, 0.1]. Its software is in no registry. Here the
likelihood is that of the Planck 2018 spectra (plik_lite, 613 bins) and of the distances of SDSS
DR12 and DR16 (red galaxies, quasars), with priors for the optical depth and the calibration; CAMB
computes the spectra.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy.io import FortranFile
from scipy.linalg import block_diag

from raybo.arrays import Array
from raybo.benchmarks.problems.base import Problem
from raybo.benchmarks.problems.datasets import DatasetError, Package, fetch
from raybo.space.box import Box

_PLIK = "cosmofit/data/cmb/plik_lite/"
_SDSS = "cosmofit/data/bao/sdss/sdss_"
_DISTANCES = (  # means and covariances of D_M / r_d and D_H / r_d
    ("DR12_LRG_BAO_DMDH.dat", "DR12_LRG_BAO_DMDH_covtot.txt"),
    ("DR16_LRG_BAO_DMDH.dat", "DR16_LRG_BAO_DMDH_covtot.txt"),
    ("DR16_QSO_BAO_DMDH.txt", "DR16_QSO_BAO_DMDH_covtot.txt"),
)
DATA = Package(
    "pypi",
    "cosmofit",
    "2.2.0",
    {
        f"{_SDSS}DR12_LRG_BAO_DMDH.dat": "ccdbe5ad44016ea09e10e30f0178eb75b756417730b7b53c611ac896623c5f81",  # noqa: E501
        f"{_SDSS}DR12_LRG_BAO_DMDH_covtot.txt": "fd2a67856f0ffa7267cff5245b579dcdb4b5cd461849377a2f8e9582a7679544",  # noqa: E501
        f"{_SDSS}DR16_LRG_BAO_DMDH.dat": "b3317e7590799fad71a9a707023d0743c14d87399d6bb4129965d6a5732d91be",  # noqa: E501
        f"{_SDSS}DR16_LRG_BAO_DMDH_covtot.txt": "1a45e106f8e2bbf8742a6c3d4a9c11bdc288801fc6824e0db8cfbab4290f6160",  # noqa: E501
        f"{_SDSS}DR16_QSO_BAO_DMDH.txt": "9d3a43515d009d5c836728d4af1f1d02887fcdd874aba098c597f1f47693bbe6",  # noqa: E501
        f"{_SDSS}DR16_QSO_BAO_DMDH_covtot.txt": "c0d8bab47132045139c5bbd0ebfd8464434e1354371ceeeca70bb90ecbcee383",  # noqa: E501
        f"{_PLIK}blmin.dat": "325b351cbf8f694556bb13e98f285344e8d66811bb8eef18bcdcf1626518719d",
        f"{_PLIK}blmax.dat": "c28ade0fa5270c7e87ba07bdcb68aef8783b132b352bfaa36c04d17694ab4014",
        f"{_PLIK}bweight.dat": "8afcbd8bad769e2de96bacd80177e6543f96b2b406e6c2da1fd0d26718c9e415",
        f"{_PLIK}c_matrix_plik_v22.dat": "ad90378c50bd67841764179c90ae6711fa4317c649966ab2b0712143b31e0a32",  # noqa: E501
        f"{_PLIK}cl_cmb_plik_v22.dat": "dac0d9d493213e77c940a10a968cf0da3c5730bae60e1356c4cd8bcff96377ff",  # noqa: E501
    },
)
RANGES = {  # wide, as the paper's; Planck's best values are well inside
    "ombh2": (0.018, 0.027),
    "omch2": (0.08, 0.16),
    "H0": (55.0, 85.0),
    "tau": (0.02, 0.12),
    "log_As": (2.7, 3.4),  # log(10^10 A_s)
    "ns": (0.85, 1.08),
    "w": (-1.5, -0.5),
    "mnu": (0.0, 0.6),
    "calibration": (0.97, 1.03),
}
BINS = {"TT": 215, "TE": 199, "EE": 199}
FIRST = 30  # multipole of the first weight
TAU, CALIBRATION = (0.0544, 0.0073), (1.0, 0.0025)  # mean and deviation of the priors
DIM = 40
WORST = 1e6  # -log L where CAMB refuses a cosmology


@dataclass(frozen=True)
class Measured:
    """Binned spectra with their inverse covariance, and distances with theirs."""

    bins: Array  # (2, 215): first and last weight of each
    weights: Array
    spectra: Array  # (613,)
    spectra_precision: Array
    redshifts: Array  # of D_M and D_H in turn
    distances: Array
    distances_precision: Array


@lru_cache(maxsize=1)
def measured() -> Measured:
    """Return the data, fetched on first use."""
    paths = fetch(DATA)
    n = sum(BINS.values())
    with FortranFile(paths[f"{_PLIK}c_matrix_plik_v22.dat"], "r") as file:
        upper = np.triu(file.read_reals(dtype=np.float64).reshape(n, n).T)
    covariance = upper + upper.T - np.diag(np.diag(upper))
    edges = [np.loadtxt(paths[f"{_PLIK}{name}.dat"])[: BINS["TT"]] for name in ("blmin", "blmax")]
    rows, covariances = [], []
    for mean, spread in _DISTANCES:
        text = paths[_SDSS + mean].read_text(encoding="utf-8")
        rows += [[float(item) for item in line.split()[:2]] for line in text.splitlines() if line]
        covariances.append(np.loadtxt(paths[_SDSS + spread]))
    redshifts, distances = np.array(rows).T
    return Measured(
        np.array(edges),
        np.loadtxt(paths[f"{_PLIK}bweight.dat"]),
        np.loadtxt(paths[f"{_PLIK}cl_cmb_plik_v22.dat"])[:, 1],
        np.linalg.inv(covariance),
        redshifts,
        distances,
        np.linalg.inv(block_diag(*covariances)),
    )


def log_likelihood(cosmology: Mapping[str, float]) -> float:
    """Return the log likelihood of a cosmology, up to a constant; -10^6 where CAMB refuses."""
    camb = _camb()
    try:
        results = camb.get_results(
            camb.set_params(
                H0=cosmology["H0"],
                ombh2=cosmology["ombh2"],
                omch2=cosmology["omch2"],
                mnu=cosmology["mnu"],
                tau=cosmology["tau"],
                As=math.exp(cosmology["log_As"]) * 1e-10,
                ns=cosmology["ns"],
                w=cosmology["w"],
                dark_energy_model="ppf",
                lmax=2600,
                lens_potential_accuracy=0,  # a third less time; log L shifts by 0.9
            )
        )
        spectra = results.get_cmb_power_spectra(CMB_unit="muK", raw_cl=True)["total"]
    except (camb.CAMBError, ValueError):
        return -WORST
    data = measured()
    bins = [
        _binned(spectra[:, column], count, data)
        for column, count in ((0, BINS["TT"]), (3, BINS["TE"]), (1, BINS["EE"]))
    ]
    off = data.spectra - np.concatenate(bins) / cosmology["calibration"] ** 2
    z, sound = data.redshifts, results.get_derived_params()["rdrag"]
    radial = np.asarray(results.comoving_radial_distance(z))
    hubble = 299792.458 / np.asarray(results.hubble_parameter(z))
    across = np.where(np.arange(len(z)) % 2 == 0, radial, hubble) / sound - data.distances
    prior = ((cosmology["tau"] - TAU[0]) / TAU[1]) ** 2
    prior += ((cosmology["calibration"] - CALIBRATION[0]) / CALIBRATION[1]) ** 2
    chi2 = off @ data.spectra_precision @ off + across @ data.distances_precision @ across + prior
    return -0.5 * float(chi2)


def _binned(spectrum: Array, count: int, data: Measured) -> Array:
    low, high = data.bins[:, :count].astype(np.intp)
    return np.array(
        [
            data.weights[a : b + 1] @ spectrum[FIRST + a : FIRST + b + 1]
            for a, b in zip(low, high, strict=True)
        ]
    )


def _camb() -> Any:
    try:
        return importlib.import_module("camb")
    except ImportError:
        raise DatasetError("problem 'cosmology' needs CAMB; pip install camb") from None


@lru_cache(maxsize=1)
def mixing() -> Array:
    """Return I + S (40, 40), S uniform in [-0.1, 0.1]."""
    return np.eye(DIM) + np.random.default_rng(0).uniform(-0.1, 0.1, (DIM, DIM))


def cosmology_at(x: Array) -> dict[str, float]:
    """Return the parameters at a point of [-1, 1]^40: the first nine of (I + S) x, clipped."""
    u = (np.clip((mixing() @ x)[: len(RANGES)], -1.0, 1.0) + 1.0) / 2.0
    return {
        name: float(low + share * (high - low))
        for share, (name, (low, high)) in zip(u, RANGES.items(), strict=True)
    }


@dataclass(frozen=True)
class Cosmology:
    """log(-log L): the likelihood itself spans four orders of magnitude."""

    def __call__(self, config: Mapping[str, Any]) -> float:
        """Return the value at {"x": point of the box}."""
        return math.log(-log_likelihood(cosmology_at(np.asarray(config["x"], dtype=np.float64))))


def cosmology() -> Problem:
    """Return the problem in 40 dimensions."""
    return Problem(
        "cosmology",
        partial(Box, DIM),
        Cosmology(),
        evaluations=200,
        description="Planck and SDSS: log(-log likelihood) of 9 parameters mixed into 40",
        cost="3 to 5 s",
    )
