"""The stores on PostgreSQL and pgvector: the same contracts, for any number of processes and hosts."""
