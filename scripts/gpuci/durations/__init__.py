"""How long each test takes, and what it needs: reading what earlier runs measured."""
