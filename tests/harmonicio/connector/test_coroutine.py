"""An asyncio connector raises the refusal of its master, and never waits without end."""

import asyncio

import pytest
from processes import DEADLINE

from frameworks.harmonicio.engine.connector import AsyncConnector
from frameworks.harmonicio.engine.errors import RefusedError, UnreachableError
from frameworks.harmonicio.engine.operator_client import OperatorClient

pytestmark = pytest.mark.real


async def send(how_many=1, **options):
    """Send from several coroutines at once; raise the first exception."""
    async with asyncio.timeout(DEADLINE), AsyncConnector(c_name="s", **options) as connector:
        await asyncio.gather(*(connector.send(b"x" * 8) for _ in range(how_many)))


@pytest.mark.parametrize("how_many", [1, 5])
def test_a_wrong_token_is_raised_to_every_sender(cluster, how_many):
    """The refusal is raised at once, not after a timeout."""
    (cluster.folder / "tokens.yaml").write_text("tokens: {operator: o, worker: w, pe: p, connector: c}\n")
    cluster.operator = OperatorClient("127.0.0.1", cluster.port, "o")
    cluster.start_master("--config", str(cluster.folder / "tokens.yaml"))
    with pytest.raises(RefusedError, match="token"):
        asyncio.run(send(how_many, port=cluster.data_port, token="x", timeout=2 * DEADLINE))


def test_without_a_master_a_send_raises_after_the_timeout():
    """The error says that nothing was acknowledged."""
    with pytest.raises(UnreachableError, match="nothing was acknowledged"):
        asyncio.run(send(port=1, timeout=0.3))


def test_the_timeout_of_a_send_is_not_extended_by_other_sends():
    """Every send has its own deadline."""

    async def send_beside_others():
        async with AsyncConnector(c_name="s", port=1, timeout=0.5) as connector:
            first = asyncio.create_task(connector.send(b"x" * 8))
            others = []
            while not first.done():
                others.append(asyncio.create_task(connector.send(b"x" * 8)))
                await asyncio.sleep(0.05)
            found = await asyncio.gather(first, *others, return_exceptions=True)
            raise found[0]

    async def within_the_deadline():
        async with asyncio.timeout(DEADLINE / 4):
            await send_beside_others()

    with pytest.raises(UnreachableError, match="nothing was acknowledged"):
        asyncio.run(within_the_deadline())
