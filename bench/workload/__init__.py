"""The load that is offered and the work that is done on each message, with exact counts of both."""
