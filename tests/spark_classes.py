"""Write an archive of the classes that Spark's driver loads, which the JVMs of the tests map when they start.

A driver needs half of the CPU then until its first batch. The JVM checks that the archive fits, and goes on without it
where it does not.

Source: JEP 350, dynamic archives of class data.
"""

import os
import sys
import tempfile
from pathlib import Path

ARCHIVE = Path(__file__).parents[1] / "build" / "spark-classes.jsa"


def main() -> None:
    """Run a short query in a session whose JVM writes the archive when it ends."""
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from frameworks.spark.structured import _mapped

    def report(batches):
        return (pa.RecordBatch.from_arrays([pa.array(["done"])], ["reports"]) for _ in batches)

    ARCHIVE.parent.mkdir(exist_ok=True)
    ARCHIVE.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {
            "PYSPARK_PYTHON": sys.executable,  # python3 of the path may lack pyarrow: no batch would end
            "SPARK_CONF_DIR": f"{folder}/missing",
            "SPARK_LOCAL_DIRS": folder,
        }
        conf = {
            "spark.ui.enabled": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.log.level": "ERROR",
            "spark.sql.warehouse.dir": folder,
            "spark.driver.extraJavaOptions": f'-XX:ArchiveClassesAtExit="{ARCHIVE}" -Xlog:cds=off',
        }
        spark = SparkSession.builder.master("local[2]").config(map=conf).getOrCreate()
        reports = _mapped(spark.readStream.format("rate").load().select("value"), report)
        query = reports.writeStream.foreachBatch(lambda batch, _: batch.collect()).start()
        query.processAllAvailable()
        query.stop()
        gateway = spark.sparkContext._gateway
        spark.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(120)
    sys.exit(0 if ARCHIVE.exists() else f"{ARCHIVE}: Java wrote no archive; tests start Spark without it")


if __name__ == "__main__":
    main()
