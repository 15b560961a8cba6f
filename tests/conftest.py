"""What holds for all tests."""

from hypothesis import settings

# No deadline: how long an example takes says more about the machine than about the code. The rest is as
# hypothesis has it: the same examples each time where the variable CI is set, new ones elsewhere.
settings.register_profile("gpuci", settings(), deadline=None)
settings.load_profile("gpuci")
