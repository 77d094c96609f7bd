"""Start Spark with the secret of a password file; write what Spark knows and what each process was started with."""

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

import psutil
from pyspark.sql import SparkSession

from frameworks.spark.secrets import write_defaults


def main() -> None:
    """Write the secret that Spark holds and the arguments of this process and its children into found.json."""
    folder = Path(sys.argv[1])
    write_defaults(folder, str(folder / "password"))
    os.environ["SPARK_CONF_DIR"] = str(folder)
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.authenticate", "true").getOrCreate()
    secret = spark.sparkContext.getConf().get("spark.authenticate.secret")
    arguments = []
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):  # a helper of the launch that has ended meanwhile, or a zombie
            arguments.append(process.cmdline() or ["(none)"])
    found = {"secret": secret, "arguments": arguments}
    (folder / "found.json").write_text(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main()
