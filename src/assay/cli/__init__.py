"""The command line: ``assay``. Only here are errors turned into exit codes.

Exit codes: 0 done; 1 a check failed; 2 unusable input or an Assay error; 130 interrupted.
"""

import sys
from collections.abc import Sequence

from assay.cli.app import build_app
from assay.cli.logs import log_to_stderr
from assay.errors import AssayError


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit the process with its code."""
    log_to_stderr()
    app = build_app()
    try:
        app(args=None if arguments is None else list(arguments), standalone_mode=True)
    except (AssayError, ValueError) as error:
        print(f"assay: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        where = f"{error.filename!r}: " if error.filename else ""
        print(f"assay: cannot read or write {where}{error.strerror}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("assay: interrupted", file=sys.stderr)
        sys.exit(130)
