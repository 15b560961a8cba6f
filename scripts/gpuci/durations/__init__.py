"""How long each test takes: reading what earlier runs measured."""
