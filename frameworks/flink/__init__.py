"""Apache Flink as a framework under test."""
