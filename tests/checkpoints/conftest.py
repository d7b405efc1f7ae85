from hypothesis import settings

# A busy machine is no failure: how long an example takes says nothing about the codec.
settings.register_profile("checkpoints", deadline=None)
settings.load_profile("checkpoints")
