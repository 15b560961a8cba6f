"""A container's settings -> the shell functions that a job runs it with, and what its errors mean."""
