"""Reads a Pulsar topic through one subscription that all members share.

Messages are acknowledged once the next ones are asked for. They are received one by one: in `batch_receive` two threads
of the client set one timer (decision 0218).
"""

from collections import deque
from collections.abc import Sequence

import _pulsar
import pulsar

from bench.errors import PluginError
from bench.plugins.plugin import ConsumerPlugin
from bench.plugins.protocols import Endpoint
from consumers.partition_batches import take_batch
from producers.pulsar.admin import Admin, Backlog
from producers.pulsar.connection import make_client
from producers.pulsar.site import PulsarSite

SUBSCRIPTION = "stream-bench"
QUEUE_BYTES, QUEUE_MESSAGES = 32 * 10**6, 10_000
"""Of what the client fetches ahead: enough for a step, and no more of the memory."""
_TYPES = {
    "failover": pulsar.ConsumerType.Failover,
    "shared": pulsar.ConsumerType.Shared,
    "key_shared": pulsar.ConsumerType.KeyShared,
}


class PulsarConsumer:
    """A member of the subscription; Pulsar decides which partitions, messages or keys it gets."""

    def __init__(self, endpoint: Endpoint, member: int, members: int) -> None:  # noqa: ARG002  Pulsar counts them itself
        self._batches: deque[list[_pulsar.Message]] = deque()
        self._given: list[_pulsar.Message] = []
        self._closed = False
        kind, size = str(endpoint.client["subscription"]), int(endpoint.client["message_bytes"])
        self._ahead = ahead = max(1, min(QUEUE_MESSAGES, QUEUE_BYTES // size))
        self._client, self._in_order = make_client(endpoint.address, endpoint.client), kind == "failover"
        try:
            self._consumer = self._client.subscribe(
                endpoint.name,
                SUBSCRIPTION,
                consumer_type=_TYPES[kind],
                consumer_name=f"member-{member:03}",  # partitions are shared out in the order of the names
                receiver_queue_size=ahead,
                max_total_receiver_queue_size_across_partitions=ahead * endpoint.parts,
                initial_position=pulsar.InitialPosition.Latest,
            )
        except pulsar.PulsarException as problem:
            self.close()
            raise PluginError(
                "pulsar", "open", f"{endpoint.name} cannot be read at {endpoint.address}: {problem}"
            ) from problem

    def take(self, max_messages: int, timeout: float) -> Sequence[bytes]:
        """Return up to `max_messages` messages of one part, as soon as there are any; none after `timeout` seconds.

        Raises:
            PluginError: Pulsar gives an error, or refuses an acknowledgement.
        """
        self._acknowledge()
        if not self._batches:
            self._batches.extend(self._receive(timeout))
        self._given = take_batch(self._batches, max_messages)
        return [message.data() for message in self._given]

    def close(self) -> None:
        """Disconnect."""
        if not self._closed:
            self._closed = True
            self._client.shutdown()

    def _receive(self, timeout: float) -> list[list[_pulsar.Message]]:
        """Return the messages that have come, by partition.

        The first message as soon as it is there, with all that waits behind it.
        """
        receive = self._consumer._consumer.receive  # noqa: SLF001  the wrapper makes an object for each message
        found: dict[int, list[_pulsar.Message]] = {}
        wait_ms = max(1, round(timeout * 1000))
        try:
            for _ in range(self._ahead):
                message = receive(wait_ms)
                found.setdefault(message.message_id().partition(), []).append(message)
                wait_ms = 0
        except pulsar.Timeout:
            pass
        except pulsar.PulsarException as problem:
            raise PluginError("pulsar", "take", str(problem)) from problem
        return list(found.values())

    def _acknowledge(self) -> None:
        """Acknowledge what was returned last: it is processed."""
        given, self._given = self._given, []
        try:
            if given and self._in_order:
                self._consumer.acknowledge_cumulative(given[-1])
            else:
                for message in given:
                    self._consumer.acknowledge(message)
        except pulsar.PulsarException as problem:
            raise PluginError("pulsar", "acknowledge", str(problem)) from problem


def backlog(endpoint: Endpoint) -> Backlog:
    """Return what the members have still to acknowledge."""
    admin_url, namespace, ca_file, token_file = (
        str(endpoint.client[name]) for name in ("admin_url", "namespace", "ca_file", "token_file")
    )
    site = PulsarSite(endpoint.address, admin_url, namespace, ca_file or None, token_file or None)
    return Admin(site).backlog(endpoint.name.rpartition("/")[2], SUBSCRIPTION)


plugin = ConsumerPlugin(open=PulsarConsumer)
