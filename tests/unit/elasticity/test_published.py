"""Published runs of DS2 and Dhalion, beside what the same policies do on the simulated job.

Figures of the papers are theirs: Kalavri et al. (OSDI 2018), measured on Heron and Flink. Ours are a model's.
"""

import pytest

from bench.elasticity.dataflow import chain
from bench.elasticity.dhalion import Dhalion, DhalionSettings
from bench.elasticity.ds2 import Ds2, Ds2Settings
from bench.elasticity.policy_run import run_policy
from bench.elasticity.samples import InstanceSample, Sample
from bench.elasticity.simulated_job import JobSimulation, SimulatedJob, SimulatedOperator
from bench.units import Seconds

WORDS = chain("source", "flatmap", "count")
SENTENCES = 1e6 / 60
"""A second: 1 M a minute."""
SPLIT = SimulatedOperator(rate=1e5 / 60, selectivity=20)
COUNT = SimulatedOperator(rate=1e6 / 60)
INTERVAL_S = 60.0


def follow(policy, *, noise=0.0, seed=0, intervals=40):
    """Return the (FlatMap, Count) instances after each change, and when the last one was, on Heron's word count."""
    job = SimulatedJob(WORDS, {"flatmap": SPLIT, "count": COUNT}, durable=False, noise=noise)
    load = [{"source": SENTENCES}] * intervals
    run = run_policy(JobSimulation(job, {"flatmap": 1, "count": 1}, seed), policy, load, interval=INTERVAL_S)
    changes = [decision for decision in run if decision.is_change]
    steps = [(change.plan.parallelism["flatmap"], change.plan.parallelism["count"]) for change in changes]
    return steps, changes[-1].sample.at


def test_ds2_sizes_the_word_count_of_heron_in_one_step():
    """Published: FlatMap 10 and Count 20, in one step and 60 s. Ours: the same."""
    assert follow(Ds2(Ds2Settings(warm_up_time=Seconds(0)), WORDS)) == ([(10, 20)], 60.0)


def test_dhalion_takes_four_steps_in_the_ideal_model():
    """Published: six scale-ups, 2,000 s, FlatMap 22 and Count 30. Ours: four, 600 s, 10 and 20.

    The model has no noise, no restart and exact back-pressure; the published run had all three. Ours is not the
    published behaviour, and is nowhere shown as if it were.
    """
    assert follow(Dhalion(DhalionSettings(), WORDS)) == ([(1, 5), (5, 5), (5, 20), (10, 20)], 600.0)


@pytest.mark.parametrize("seed", range(5))
def test_with_noise_dhalion_ends_above_what_is_needed(seed):
    """As published in kind, not in number: it goes on to add instances, and has no resolver that removes them."""
    steps, at = follow(Dhalion(DhalionSettings(), WORDS), noise=0.1, seed=seed)
    assert len(steps) > 4
    assert sum(steps[-1]) > 30
    assert at > 600


NEXMARK = {
    "Q2": {8: 11, 11: 13, 12: 14, 13: 14, 14: 14, 16: 12},
    "Q8": {8: 10, 10: 10, 16: 8},
}
"""What DS2 decided at a number of instances of the main operator, in the runs of Table 4 that our reference quotes.

It does not have all of its 36 runs (of which 19 took one step, 14 two and 3 three); the others are not replayed here.
"""


@pytest.mark.parametrize(
    ("query", "steps"),
    [("Q2", [8, 11, 13, 14]), ("Q2", [12, 14]), ("Q2", [16, 12, 14]), ("Q8", [8, 10]), ("Q8", [16, 8, 10])],
    ids=str,
)
def test_nexmark_runs_are_repeated_step_by_step(query, steps):
    """With the true rates behind each published decision ours are the same, and end where the published ones do."""
    flow, decided = chain("source", "main"), NEXMARK[query]
    assert replay(flow, {(p,): (q,) for p, q in decided.items()}, (steps[0],)) == [(step,) for step in steps]


DYNAMIC = {(10, 5): (14, 7), (14, 7): (19, 11), (19, 11): (19, 11)}
HALF_LOAD = {(19, 11): (7, 4), (7, 4): (7, 5), (7, 5): (7, 5)}


@pytest.mark.parametrize(
    ("decided", "steps"),
    [(DYNAMIC, [(10, 5), (14, 7), (19, 11)]), (HALF_LOAD, [(19, 11), (7, 4), (7, 5)])],
    ids=["load doubles", "load halves"],
)
def test_the_dynamic_source_on_flink_is_repeated_step_by_step(decided, steps):
    """Published for FlatMap and Count. The loads are not in our reference; the decisions are replayed."""
    assert replay(WORDS, decided, steps[0]) == steps


def replay(flow, decided, start):
    """Return the instances that DS2 runs one after the other.

    Args:
        flow: The job; every record that reaches an operator is passed on.
        decided: By instances: those that the true rates ask for there, of which the middle is taken.
        start: The instances at the beginning.
    """
    policy, seen = Ds2(Ds2Settings(warm_up_time=Seconds(0)), flow), [start]
    load, seconds = 1000.0, 10.0
    while len(seen) < 10:
        per_instance = [load / (needed - 0.5) for needed in decided[seen[-1]]]
        work = {
            name: (InstanceSample(rate * seconds, rate * seconds, seconds),) * count
            for name, rate, count in zip(flow.operators, per_instance, seen[-1], strict=True)
        }
        sample = Sample(seconds, seconds, {"source": load}, {"source": load}, work)
        plan = policy.decide([sample], sample.parallelism)
        following = tuple(plan.parallelism[name] for name in flow.operators)
        if following == seen[-1]:
            break
        seen.append(following)
    return seen
