"""Parts of embedded servers: Java, jars from Maven, free ports, credentials, preflight checks."""
