"""What the archive and the records themselves say about a candidate, without a language model."""
