"""Command line. Parses arguments, calls the runner, prints the outcome. Only this package writes to stdout or exits."""
