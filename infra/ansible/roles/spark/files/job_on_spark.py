"""Runs a job of a few Python tasks on the Spark of a site file, and checks its answer."""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from bench.config.validation import read_site
from bench.services import credentials

TASKS, EACH = 8, 1000


def main() -> None:
    """Says in one line how long it took and where it ran; ends with 1 when the answer is wrong."""
    spark = read_site(Path(sys.argv[1])).spark
    if spark is None:
        sys.exit("the site has no Spark")
    builder = (
        SparkSession.builder.master(spark.master).appName("stream-bench check").config("spark.ui.enabled", "false")
    )
    for name, value in spark.conf.items():
        builder = builder.config(name, value)
    if spark.password_file:
        builder = builder.config("spark.authenticate", "true").config("spark.network.crypto.enabled", "true")
        builder = builder.config("spark.authenticate.secret", credentials.read_secret(spark.password_file))
    if spark.driver_host:
        builder = builder.config("spark.driver.host", spark.driver_host)
    began = time.monotonic()
    session = builder.config("spark.cores.max", "2").getOrCreate()
    try:
        answers = session.sparkContext.parallelize(range(TASKS * EACH), TASKS).mapPartitions(_answer).collect()
    finally:
        session.stop()
    total, hosts = sum(answer[0] for answer in answers), sorted({answer[1] for answer in answers})
    if total != sum(range(TASKS * EACH)):
        sys.exit(f"{spark.master} gave a wrong answer: {total}")
    print(f"{TASKS} Python tasks ran on {', '.join(hosts)} of {spark.master} in {time.monotonic() - began:.1f} s")


def _answer(numbers):
    import platform

    yield sum(numbers), platform.node()


if __name__ == "__main__":
    main()
