"""The policy `irm` asks for PEs as HarmonicIO's resource manager does, and packs them onto workers."""

from bench.elasticity.dataflow import chain
from bench.elasticity.policy_run import run_policy
from bench.elasticity.samples import InstanceSample, Sample
from bench.elasticity.simulated_job import JobSimulation, SimulatedJob, SimulatedOperator
from bench.units import Seconds
from frameworks.harmonicio.irm_policy import Irm, IrmSettings

FLOW = chain("stream", "image")


def follow(load, start=1, **settings):
    """Return the decisions of each second for PEs that process 10 messages/s."""
    job = SimulatedJob(FLOW, {"image": SimulatedOperator(10.0)}, full_queue=0.0)
    return run_policy(JobSimulation(job, {"image": start}), Irm(IrmSettings(**settings), FLOW), load, interval=1)


def test_pes_are_added_two_at_a_time_while_the_queue_grows():
    """With the paper's parameters: more than 5 messages/s of growth, and 10 s between two additions."""
    run = follow([{"stream": 50.0}] * 40)
    changes = [(decision.sample.at, decision.plan.parallelism["image"]) for decision in run if decision.is_change]
    assert changes[:3] == [(1.0, 3), (12.0, 5), (23.0, 7)]
    assert "2 more PEs" in run[0].plan.reason


def test_the_shipped_parameters_add_four_at_a_time():
    """They wait for 5 s and for a growth of more than 10 messages/s."""
    run = follow([{"stream": 50.0}] * 3, parameters="shipped")
    assert run[0].plan.parallelism == {"image": 5}


def test_nothing_but_idle_time_ends_pes():
    """Of eight PEs two have work; the others end after the idle time."""
    run = follow([{"stream": 20.0}] * 12, start=8, idle_timeout=Seconds(10))
    changes = [(decision.sample.at, decision.plan.parallelism["image"]) for decision in run if decision.is_change]
    assert changes == [(10.0, 2)]
    assert "6 idle PEs end" in run[9].plan.reason


def test_the_workers_follow_from_the_size_of_the_pes():
    """Eight busy PEs fill the cores of a worker; one more worker is kept idle."""
    run = follow([{"stream": 80.0}], start=8)
    assert run[0].plan.reason.endswith("8 PEs on 1 workers by first-fit, 2 with idle ones")
    small = follow([{"stream": 80.0}], start=8, packer="best-fit", worker_cores=4)
    assert "8 PEs on 2 workers by best-fit" in small[0].plan.reason


def test_a_queue_grows_since_the_sample_before():
    """Which is several intervals ago where a change was under way: 180 messages in 45 s are -4/s, and not -12/s."""
    busy = InstanceSample(270.0, 270.0, 15.0)
    samples = [
        Sample(at, 15.0, {"stream": 40.0}, {"stream": 36.0}, {"image": (busy,) * pes}, {"stream": waiting})
        for at, pes, waiting in ((15.0, 1, 380.0), (60.0, 2, 200.0))
    ]
    plan = Irm(IrmSettings(parameters="shipped"), FLOW).decide(samples, {"image": 2})
    assert "-4/s: 4 more PEs" in plan.reason
