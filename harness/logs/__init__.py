"""Parsers over lines of text. No I/O, no state outside a call or an object: usable alone."""
