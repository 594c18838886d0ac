"""JointCoreBench: which records a decision needs, with exact answers. See ``conditions`` first."""
