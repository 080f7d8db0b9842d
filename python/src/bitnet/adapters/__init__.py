"""Adapters for other frameworks; each module here imports its framework."""
