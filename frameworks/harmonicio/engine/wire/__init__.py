"""The data plane's wire format: frames, control messages, and the messages of the legacy protocol."""
