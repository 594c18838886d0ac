"""An event-driven agent runtime whose memory has to earn its place in the prompt."""
