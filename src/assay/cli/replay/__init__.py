"""``assay replay SUITE``: benchmark suites, one module each."""
