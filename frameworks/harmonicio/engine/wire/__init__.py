"""What goes over a data connection: frames, the words of control frames, and what of the old wire is read and written."""
