"""The load that is offered, the processing of each message, and exact counts of both."""
