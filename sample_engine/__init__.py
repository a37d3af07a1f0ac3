"""The bundled engine: a program of its own that perfkit starts and measures. Imports none of the other packages."""
