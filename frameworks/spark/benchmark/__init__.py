"""A benchmark of Spark's sources without the load generator: `python -m frameworks.spark.benchmark`."""
