"""Any program as a framework under test: it reads a source and sends back the headers of what it has processed."""
