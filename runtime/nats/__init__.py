"""Work and news between processes, over NATS JetStream. Truth is in the bank: all here may be lost."""
