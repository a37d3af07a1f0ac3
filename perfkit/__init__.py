"""perfkit: where does the time of a GPU inference service go, and how do you know?"""

__version__ = "0.1.0"
