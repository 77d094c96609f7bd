"""Work other than ours in the window of a trial, and the loss that it may have caused.

Foreign work is the CPU time of this machine that went neither to the system, the load generator and the harness nor to
the kernel's threads, and the time that a hypervisor stole, here or on a host of the site. It never changes the verdict
of a sustained trial, only of an overload that it could explain. How much less a sustained trial shows beside it is in
bench.analysis.capacity_reading.
"""

from msgspec import Struct

from bench.model.measurement import Measurement

ACCOUNT_ERROR_SHARE, ACCOUNT_ERROR_S = 0.01, 0.02
"""Uncertainty of a foreign share: a share of the machine, and CPU seconds a window. The counters have steps of 0.01 s,
and two readings of them are some milliseconds apart."""
LOSS_FACTOR = 3.0
"""Foreign work can lower a maximum rate by this multiple of its share of the machine. A process that is always busy on
all cores loses that share. A stage with one thread on one of two cores loses twice as much, and bursts at an end of the
window change the estimated drift by up to 4/3 of that."""
OUR_ROLES = ("framework", "source", "load", "harness", "kernel")
DEATHS = ("framework died", "source died")
"""Ends of a trial in which a process of the system died."""


class CpuAccount(Struct, frozen=True):
    """CPU seconds of one machine in a window.

    `foreign`: used by other processes or stolen by the hypervisor; `available`: of all cores.
    """

    foreign: float
    available: float

    @property
    def share(self) -> float:
        """Return the foreign share of the machine, never below 0."""
        return max(0.0, self.foreign) / self.available

    @property
    def certain_share(self) -> float:
        """Return the foreign share less the uncertainty of the account, never below 0."""
        return max(0.0, self.share - ACCOUNT_ERROR_SHARE - ACCOUNT_ERROR_S / self.available)


def account_cpu(measurement: Measurement) -> list[CpuAccount]:
    """Return the accounts of this machine and of the site's hosts, as far as they are known.

    Of a host of the site only the stolen time is known to be foreign. The CPU time of a dead process is not recorded,
    so that nothing is known of this machine after a death.
    """
    cpu, accounts = measurement.cpu, []
    if cpu.get("available") and "steal" in cpu and measurement.ended not in DEATHS:
        ours = sum(cpu.get(role, 0.0) for role in OUR_ROLES)
        # time stolen from an idle core counts as idle, too: then `busy` is too small by it
        accounts.append(CpuAccount(max(cpu["steal"], cpu["busy"] + cpu["steal"] - ours), cpu["available"]))
    hosts = measurement.hosts.values()
    return accounts + [CpuAccount(host["steal"], host["available"]) for host in hosts if host.get("available")]


def foreign_share(measurement: Measurement) -> float:
    """Return the largest share of a machine's CPU time that foreign work took; 0 if it is not known."""
    return max((account.share for account in account_cpu(measurement)), default=0.0)


def explainable_loss(measurement: Measurement) -> float:
    """Return the largest loss, as a share of the offered rate, that foreign work can explain."""
    certain = max((account.certain_share for account in account_cpu(measurement)), default=0.0)
    return min(1.0, LOSS_FACTOR * certain)


def explainable_delay(measurement: Measurement) -> float:
    """Return the longest delay of a message in seconds that foreign work can explain."""
    return explainable_loss(measurement) * measurement.cpu.get("seconds", measurement.planned.window)
