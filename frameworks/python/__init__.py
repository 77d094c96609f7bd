"""No framework at all: N Python processes that read the source; the base line that every framework must justify."""
