"""Waiting for sockets can be cancelled at any moment."""

import asyncio

import pytest

from frameworks.harmonicio.engine.connector.coroutine import wait_for_sockets_async


@pytest.mark.parametrize("steps", range(5))
def test_a_cancellation_is_never_swallowed(steps):
    """This holds also at the moment at which the event occurs: a stopped master would go on for ever."""

    async def cancelled():
        event = asyncio.Event()
        task = asyncio.create_task(wait_for_sockets_async([], 30, event))
        await asyncio.sleep(0.001)
        event.set()
        for _ in range(steps):
            await asyncio.sleep(0)
        was_over = task.done()
        task.cancel()
        await asyncio.wait([task])
        return was_over or task.cancelled()

    assert asyncio.run(cancelled())
