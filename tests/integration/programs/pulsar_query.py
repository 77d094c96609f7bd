"""A Spark query on a Pulsar topic that leaves what each batch has read in a file: SERVICE_URL TOPIC FOLDER
[OPTION=VALUE ...].
"""

import json
import os
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from frameworks.spark.pulsarsource import PulsarDataSource


def main(service_url, topic, folder, *options):
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.dataSource.register(PulsarDataSource)

    def save(batch, number):
        rows = sorted(
            [int(row.value), row.key, row.position, row.topic, row.publishTime.timestamp()] for row in batch.collect()
        )
        (Path(folder) / "part").write_text(json.dumps(rows))
        (Path(folder) / "part").rename(Path(folder) / f"batch-{number:05d}.json")

    message, times = (
        "value binary, key string, position string, topic string",
        "publishTime timestamp, eventTime timestamp",
    )
    stream = spark.readStream.format("pulsar").schema(f"{message}, {times}, redeliveries int")
    given = dict(option.split("=", 1) for option in options)
    frame = stream.options(serviceUrl=service_url, topic=topic, startingPositions="earliest", **given).load()
    query = frame.writeStream.foreachBatch(save).option("checkpointLocation", f"{folder}/checkpoint")
    query = query.trigger(processingTime="200 milliseconds").start()
    while query.isActive and not (Path(folder) / "stop").exists():
        time.sleep(0.05)
    if query.exception() is not None:
        raise query.exception()
    query.stop()


main(*sys.argv[1:])
