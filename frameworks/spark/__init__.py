"""Apache Spark through PySpark."""
