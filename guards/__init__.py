"""Which candidates may enter the prompt."""
