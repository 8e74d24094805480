"""Synchronisation: events, flags and barriers."""
