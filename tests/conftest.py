"""Settings of every test: no verdict depends on how fast the machine is."""

from hypothesis import HealthCheck, settings

# On top of what hypothesis chose by itself, for on a build server that is a profile of its own.
settings.register_profile(
    "groupwatch", parent=settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
# make test TESTS=tests/properties ARGS=--hypothesis-profile=long
settings.register_profile("long", settings.get_profile("groupwatch"), max_examples=5_000)
settings.load_profile("groupwatch")
