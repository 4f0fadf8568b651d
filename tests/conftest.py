"""Settings that every test shares: how hard Hypothesis looks, and that a failure can be run again."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "test", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow], max_examples=100
)
settings.register_profile("torture", parent=settings.get_profile("test"), max_examples=5_000)
settings.load_profile("test")
