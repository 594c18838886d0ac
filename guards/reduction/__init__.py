"""Reducing a context to a sufficient core: searches that ask questions, and what drives them."""
