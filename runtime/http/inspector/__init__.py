"""The inspector: pages that show what is remembered, what each prompt got to see, and why."""
