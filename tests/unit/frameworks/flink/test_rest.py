"""Whatever answers in place of Flink's REST interface is told as an error that the harness foresees."""

from collections.abc import Callable

import pytest

from bench.errors import ServiceError
from frameworks.flink.rest import FlinkRest


@pytest.mark.parametrize(
    "answer",
    [
        b"220 this is another service\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}",
        b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 100\r\n\r\n{}",
    ],
    ids=["no HTTP", "ends early", "an error that ends early"],
)
def test_an_answer_that_is_no_whole_http_is_told(serve: Callable[..., str], answer: bytes) -> None:
    """It is a ServiceError of one line that names what was asked for."""
    with pytest.raises(ServiceError, match=r"does not answer /overview: .") as told:
        FlinkRest(serve(answer)).overview()
    assert len(str(told.value).splitlines()) == 1
