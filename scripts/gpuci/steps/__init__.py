"""What each action does: its environment -> the library -> outputs, summary, exit code."""
