"""Questions with known answers: benchmarks, rollouts, reports."""
