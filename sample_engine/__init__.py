"""The bundled engine: a program of its own that perfkit starts and measures. Imports no other package."""
