"""GitHub: events, who approved what, the API, workflow commands, the gate."""
