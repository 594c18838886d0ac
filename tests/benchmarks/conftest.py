"""Lets tests import ``benchmarks``, which is scripts beside the package and not installed."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
