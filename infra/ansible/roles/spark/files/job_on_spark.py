"""Check of Spark: runs a job of a few Python tasks on the Spark of a site file, and checks its result."""

import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from pyspark.sql import SparkSession

from bench.plugins.site_file import read_site_file
from frameworks.spark.secrets import write_defaults
from frameworks.spark.site import SPARK_SITE, SparkSite

TASKS, NUMBERS_PER_TASK = 8, 1000


def main() -> None:
    """Print how long the job took and on which hosts it ran; exit with 1 if the result is wrong."""
    spark = SPARK_SITE.read(read_site_file(Path(sys.argv[1])))
    if spark is None:
        sys.exit("the site has no Spark")
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        if spark.password_file:  # never in the arguments of the JVM, which every account can read
            write_defaults(Path(folder), spark.password_file)
        os.environ["SPARK_CONF_DIR"] = folder
        results = _run_job(spark)
    total, hosts = sum(result[0] for result in results), sorted({result[1] for result in results})
    if total != sum(range(TASKS * NUMBERS_PER_TASK)):
        sys.exit(f"{spark.master} returned a wrong result: {total}")
    print(f"{TASKS} Python tasks ran on {', '.join(hosts)} of {spark.master} in {time.monotonic() - started:.1f} s")


def _run_job(spark: SparkSite) -> list[tuple[int, str]]:
    """Return the sum and the host of each task."""
    builder = (
        SparkSession.builder.master(spark.master).appName("stream-bench check").config("spark.ui.enabled", "false")
    )
    for name, value in spark.conf.items():
        builder = builder.config(name, value)
    if spark.password_file:
        builder = builder.config("spark.authenticate", "true").config("spark.network.crypto.enabled", "true")
    if spark.driver_host:
        builder = builder.config("spark.driver.host", spark.driver_host)
    builder = builder.config("spark.scheduler.minRegisteredResourcesRatio", "1.0")  # wait for all workers, 30 s at most
    session = builder.config("spark.cores.max", "2").getOrCreate()
    try:
        numbers = session.sparkContext.parallelize(range(TASKS * NUMBERS_PER_TASK), TASKS)
        return numbers.mapPartitions(_sum_numbers).collect()
    finally:
        session.stop()


def _sum_numbers(numbers: Iterable[int]) -> Iterator[tuple[int, str]]:
    import platform

    yield sum(numbers), platform.node()


if __name__ == "__main__":
    main()
