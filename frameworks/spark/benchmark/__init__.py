"""What Spark's sources can do with the generator out of the way: `python -m frameworks.spark.benchmark`."""
