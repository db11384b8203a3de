"""Names the packages: the rooms of this repository, each under the one import name fencepost."""

from setuptools import find_packages, setup

ROOMS = ("spec", "checker", "impl", "traces")

setup(packages=[f"fencepost.{name}" for name in find_packages(include=[*ROOMS, *(f"{room}.*" for room in ROOMS)])])
