"""What is remembered, and where."""
