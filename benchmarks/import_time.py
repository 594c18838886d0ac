"""CPU of ``import assay`` in a fresh process, over the CPU of an empty process.

Run: ``python benchmarks/import_time.py``. Prints one JSON object; the target is at most 0.3 s.
"""

import json
import resource
import statistics
import subprocess
import sys

ROUNDS = 7
HEAVY = ("openai", "scipy", "faiss", "xllamacpp", "altair", "numpy")


def cpu(code: str) -> float:
    """CPU seconds of a fresh interpreter running ``code``."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603  # ourselves
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def loaded(code: str) -> list[str]:
    """Heavy modules that are loaded after ``code``."""
    listing = f"{code}; import sys; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run(  # noqa: S603  # ourselves
        [sys.executable, "-c", listing], check=True, capture_output=True, text=True
    )
    return done.stdout.split()


def main() -> None:
    """Measure the bare import, and with the names an application uses first."""
    used = "import assay; assay.open_runtime; assay.ScriptedModel"
    empty = statistics.median(cpu("pass") for _ in range(ROUNDS))
    figures = {
        "empty_s": round(empty, 3),
        "import_assay_s": round(
            statistics.median(cpu("import assay") for _ in range(ROUNDS)) - empty, 3
        ),
        "with_open_runtime_s": round(
            statistics.median(cpu(used) for _ in range(ROUNDS)) - empty, 3
        ),
        "heavy_loaded": loaded("import assay"),
        "heavy_loaded_with_open_runtime": loaded(used),
        "target_s": 0.3,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
