"""What holds for all tests."""

import signal

from hypothesis import settings

# No deadline: how long an example takes says more about the machine than about the code. The rest is as
# hypothesis has it: the same examples each time where the variable CI is set, new ones elsewhere.
settings.register_profile("gpuci", settings(), deadline=None)
settings.load_profile("gpuci")

# A shell ignores it for what it starts in the background, and all that the tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
