"""Instances and measurements: what the solvers are judged by."""
