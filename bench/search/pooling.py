"""The evidence of a map's cells together: how often each noise occurs, and how long a cold system needs."""

from collections.abc import Sequence

import numpy as np

from bench.search.posterior import COLD_WEIGHTS, SIGMA_WEIGHTS, SIGMAS, WARM_UPS_S

POOL_CELLS, POOL_STEPS = 3.0, 50
"""Cells that the prior of the noise weighs as much as, where cells share their noise; steps of the iteration."""
WARM_UP_FLOOR = 0.02
"""Least probability of each time until full speed, whatever other cells show."""


def pool_noise(
    likelihoods: Sequence[Sequence[float]], prior: Sequence[float] = tuple(SIGMA_WEIGHTS.tolist())
) -> tuple[float, ...]:
    """Return how often each of SIGMAS occurs among cells: the most probable frequencies after their evidence.

    Frequencies have a Dirichlet prior that weighs as much as POOL_CELLS cells; they are found by expectation
    maximisation (Dempster, Laird and Rubin, 1977). A cell noisier than all others stays possible.

    Args:
        likelihoods: Of each cell, the likelihood of each of SIGMAS.
        prior: Mean of the Dirichlet prior.
    """
    frequencies, given = np.array(prior), np.array(prior)
    evidence = np.array([each for each in likelihoods if len(each) == len(SIGMAS)]).reshape(-1, len(SIGMAS))
    for _ in range(POOL_STEPS):
        shares = frequencies * evidence
        counts = (shares / shares.sum(axis=1, keepdims=True)).sum(axis=0)
        frequencies = (POOL_CELLS * given + counts) / (POOL_CELLS + len(evidence))
    return tuple(np.round(frequencies, 6).tolist())


def pool_warm_ups(likelihoods: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Return the probability of each of WARM_UPS_S for a cold system after the evidence of its cells, which share one.

    Args:
        likelihoods: Of each cell, the likelihood of each of WARM_UPS_S.
    """
    evidence = [each for each in likelihoods if len(each) == len(WARM_UPS_S)]
    weights = np.array(COLD_WEIGHTS) * np.prod(np.maximum(np.reshape(evidence, (-1, len(WARM_UPS_S))), 1e-4), axis=0)
    floored = np.maximum(weights / weights.sum(), WARM_UP_FLOOR)
    return tuple(np.round(floored / floored.sum(), 6).tolist())
