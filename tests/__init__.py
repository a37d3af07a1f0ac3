"""Tests of perfkit, one file a behaviour, and the writers that build their tiny inputs."""
