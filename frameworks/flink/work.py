"""The functions that Flink's Python workers run: the common work on messages, reported to the harness."""

from contextlib import closing
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from msgspec.structs import replace
from pyflink.datastream import FlatMapFunction
from pyflink.table.udf import ScalarFunction

from frameworks.flink.commands import Work
from frameworks.flink.gathered_work import GatheredWork
from frameworks.report_connection import ReportConnection


class PandasWork(ScalarFunction):  # type: ignore[misc]  # PyFlink is not installed where types are checked
    """A pandas UDF: processes a batch, whose results Flink gets together."""

    def __init__(self, work: Work) -> None:
        self._given = msgspec.json.encode(work)

    def open(self, function_context: Any) -> None:  # noqa: ARG002  PyFlink's signature
        """Connect to the harness."""
        given = msgspec.json.decode(self._given, type=Work)
        self._work = replace(given.work, results_together=True)
        self._reports = ReportConnection(given.reports, at_once=given.at_once)

    def eval(self, bodies: pd.Series) -> pd.Series:
        """Process messages; return a zero for each."""
        messages = [b"" if body is None else body for body in bodies.tolist()]  # no body: one of the wrong size
        if messages:
            self._reports.add(self._work.process(messages))
        return pd.Series(np.zeros(len(messages), dtype=np.int8))

    def close(self) -> None:
        """Report the rest."""
        self._reports.close()

    def is_deterministic(self) -> bool:
        """Return False: it must be called for each message, however alike they are."""
        return False


class MessageWork(FlatMapFunction):  # type: ignore[misc]
    """A function of the DataStream API: takes one message after the other, and returns nothing."""

    def __init__(self, work: Work) -> None:
        self._given = msgspec.json.encode(work)

    def open(self, runtime_context: Any) -> None:  # noqa: ARG002  PyFlink's signature
        """Connect to the harness."""
        given = msgspec.json.decode(self._given, type=Work)
        self._work = GatheredWork(given.work.process, given.gathered)
        self._reports = ReportConnection(given.reports, at_once=given.at_once, flush=self._work.flush_waiting)

    def flat_map(self, value: str) -> list[int]:
        """Take a message, which PyFlink gives as a text of Latin-1."""
        reports = self._work.add(value.encode("latin-1", "replace"))
        if reports:
            self._reports.add(reports)
        return []

    def close(self) -> None:
        """Report the rest."""
        with closing(self._reports):
            self._reports.add(self._work.flush())
