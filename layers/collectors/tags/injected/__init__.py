"""A folder for PYTHONPATH that holds `sitecustomize` and nothing else; never imported as a package."""
