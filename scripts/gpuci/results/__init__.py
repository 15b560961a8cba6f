"""Journals -> outcomes, reconciliation, verdict."""
