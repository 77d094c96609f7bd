"""The way into the master's queue: validates frames and messages of the legacy protocol, and adds them."""

from frameworks.harmonicio.engine.errors import ProtocolError, RefusedError
from frameworks.harmonicio.engine.master.queue import MessageQueue
from frameworks.harmonicio.engine.wire.frame import EQUAL, Frame, FrameKind, encode_header

_NAME_DIGITS = 3
MAX_NAME_BYTES = _NAME_DIGITS + 999
"""Bytes before a message of the legacy protocol: three digits and the name of the image."""


class QueueIntake:
    """Adds what connectors send to the queue.

    Args:
        queue: the master's queue.
        max_message_bytes: longest message of the legacy protocol.
        legacy_protocol: whether that is accepted at all.
    """

    def __init__(self, queue: MessageQueue, *, max_message_bytes: int, legacy_protocol: bool) -> None:
        self._queue, self._max_message_bytes, self._legacy_protocol = queue, max_message_bytes, legacy_protocol
        self.accepted = 0
        """messages that were added"""

    def add_frame(self, c_name: str, frame: Frame) -> None:
        """Add a DATA frame.

        Raises:
            ProtocolError: the frame is not valid, or does not fit the queue.
            RefusedError: the journal cannot be written.
        """
        header = frame.header
        if header.flags & ~EQUAL:
            raise ProtocolError("a frame for the queue must contain its messages")
        head = encode_header(
            FrameKind.DATA, header.size, header.body_crc, flags=header.flags, count=header.count,
            ids=(header.session, header.first, header.low_watermark),
        )  # fmt: skip
        frame.batch()  # raises ProtocolError when lengths and body do not agree
        try:
            added = self._queue.add(c_name, head, frame.body)
        except RefusedError as error:
            raise ProtocolError(f"a frame cannot be queued: {error}") from None
        except OSError as error:
            raise RefusedError(f"the journal takes nothing: {error}") from None
        self.accepted += header.count if added else 0

    def add_raw(self, data: bytes) -> str:
        """Add a message of the legacy protocol: three digits, the length of the name; the name; the message.

        Returns:
            The name of the stream.

        Raises:
            ProtocolError: the data is not such a message, or too long.
            RefusedError: the queue is full, or the journal cannot be written.
        """
        digits = data[:_NAME_DIGITS]
        end = _NAME_DIGITS + int(digits) if digits.isdigit() and len(digits) == _NAME_DIGITS else len(data)
        if not self._legacy_protocol or not _NAME_DIGITS < end < len(data):
            raise ProtocolError("neither a frame nor a message of the legacy protocol")
        size = len(data) - end
        if size > self._max_message_bytes:
            raise ProtocolError(f"a message of {size} bytes; at most {self._max_message_bytes} are accepted here")
        try:
            c_name = data[_NAME_DIGITS:end].decode()
        except UnicodeDecodeError:
            raise ProtocolError("the name of an image is not UTF-8") from None
        try:
            self._queue.add_message(c_name, data[end:])
        except OSError as error:
            raise RefusedError(f"the journal takes nothing: {error}") from None
        self.accepted += 1
        return c_name
