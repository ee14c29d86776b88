from hypothesis import settings

# Other work on the machine decides how long one example takes; it is no claim of these tests.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
