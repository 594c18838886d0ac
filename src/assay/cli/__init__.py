"""The command line: ``assay``. Only here are errors turned into exit codes.

Exit codes: 0 done; 1 a check failed; 2 unusable input or an Assay error; 130 interrupted.
"""

import sys
from collections.abc import Sequence

from assay.cli.app import build_app
from assay.errors import AssayError


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit the process with its code."""
    app = build_app()
    try:
        app(args=None if arguments is None else list(arguments), standalone_mode=True)
    except AssayError as error:
        print(f"assay: {error}", file=sys.stderr)
        sys.exit(2)
    except ValueError as error:
        print(f"assay: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("assay: interrupted", file=sys.stderr)
        sys.exit(130)
