"""Property tests on a shared machine: no wall-clock verdicts."""

from hypothesis import HealthCheck, settings

settings.register_profile("council", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("council")
