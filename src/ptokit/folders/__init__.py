"""Folders of programs: what is run, on which inputs, and what came of it."""
