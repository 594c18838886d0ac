"""The service: guarded memory in front of a model, spoken to as one speaks to OpenAI."""
