"""`python -m bench` is the command `bench`."""

from bench.cli.app import main

main()
