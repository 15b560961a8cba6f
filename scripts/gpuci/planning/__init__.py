"""Targets and durations -> units -> shards -> plan.json."""
