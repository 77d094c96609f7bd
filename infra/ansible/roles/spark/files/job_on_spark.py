"""Check of Spark: runs a job of a few Python tasks on the Spark of a site file, and checks its result."""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from bench.plugins.site_file import read_site_file
from bench.services.credentials import read_secret
from frameworks.spark.site import SPARK_SITE

TASKS, NUMBERS_PER_TASK = 8, 1000


def main() -> None:
    """Print how long the job took and on which hosts it ran; exit with 1 if the result is wrong."""
    spark = SPARK_SITE.read(read_site_file(Path(sys.argv[1])))
    if spark is None:
        sys.exit("the site has no Spark")
    builder = (
        SparkSession.builder.master(spark.master).appName("stream-bench check").config("spark.ui.enabled", "false")
    )
    for name, value in spark.conf.items():
        builder = builder.config(name, value)
    if spark.password_file:
        builder = builder.config("spark.authenticate", "true").config("spark.network.crypto.enabled", "true")
        builder = builder.config("spark.authenticate.secret", read_secret(spark.password_file))
    if spark.driver_host:
        builder = builder.config("spark.driver.host", spark.driver_host)
    started = time.monotonic()
    session = builder.config("spark.cores.max", "2").getOrCreate()
    try:
        results = (
            session.sparkContext.parallelize(range(TASKS * NUMBERS_PER_TASK), TASKS)
            .mapPartitions(_sum_numbers)
            .collect()
        )
    finally:
        session.stop()
    total, hosts = sum(result[0] for result in results), sorted({result[1] for result in results})
    if total != sum(range(TASKS * NUMBERS_PER_TASK)):
        sys.exit(f"{spark.master} returned a wrong result: {total}")
    print(f"{TASKS} Python tasks ran on {', '.join(hosts)} of {spark.master} in {time.monotonic() - started:.1f} s")


def _sum_numbers(numbers):
    import platform

    yield sum(numbers), platform.node()


if __name__ == "__main__":
    main()
