"""Where a user's data lives: below ``XDG_DATA_HOME`` where it is set, else the platform's place.

Nothing here creates a folder; whoever writes does.
"""

from pathlib import Path

import platformdirs


def data_folder() -> Path:
    """The folder all of it lives in."""
    return platformdirs.user_data_path("assay", appauthor=False)


def bank_path() -> Path:
    """The bank ``assay chat`` uses unless told otherwise."""
    return data_folder() / "bank"


def cache_path() -> Path:
    """The evaluation cache that benchmark runs share."""
    return data_folder() / "evaluations.db"


def models_folder() -> Path:
    """Where ``assay model pull`` puts model files and ``local:NAME`` looks for them."""
    return data_folder() / "models"


def settings_path() -> Path:
    """The settings file that is read when none is named and it is there."""
    return platformdirs.user_config_path("assay", appauthor=False) / "settings.toml"
