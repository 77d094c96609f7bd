"""Apache Pulsar as a streaming source of Apache Spark, in Python: `spark.dataSource.register(PulsarDataSource)`."""

from frameworks.spark.pulsarsource.source import PulsarDataSource

__all__ = ["PulsarDataSource"]
