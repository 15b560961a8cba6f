"""The image that tests run in: what it is made of, whether it is there already, building and pushing it."""
