"""Child processes that report what they have processed: what frameworks with processes of their own share."""

from collections.abc import Sequence

from bench.system.child import Child
from bench.workload.delivery_counts import ProcessingReport


def poll_reports(reporting: Sequence[Child], others: Sequence[Child] = ()) -> list[ProcessingReport]:
    """Return what children have reported since the last call.

    Args:
        reporting: Children that send reports through their channel.
        others: Children that have to live, too.

    Raises:
        ProcessDiedError: A child ended, and everything that was reported before was returned.
    """
    alive = [(child, child.alive()) for child in (*reporting, *others)]  # first: what was reported last is still heard
    reports = [one for child in reporting for one in child.receive() if isinstance(one, ProcessingReport)]
    for child, lives in alive:
        if not lives and not reports:
            raise child.exit_error()
    return reports
