"""E7: bands only ever tighten."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council_tui.domain.authority import Tier, clearance, e7
from domain.samples import envelope

ACTIONS = [
    "OBSERVE",
    "ANALYZE",
    "DRAFT",
    "SIMULATE",
    "MUTATE",
    "EXTERNAL_SIDE_EFFECT",
    "IRREVERSIBLE",
    "UNKNOWN",
]
RISKS = ["LOW", "MEDIUM", "HIGH", "ATOMIC"]
RADII = ["LOCAL", "ACCOUNT", "ORG", "PUBLIC", "MARKET", "INFRASTRUCTURE", "CIVILIZATIONAL", "UNKNOWN"]
ORDER = list(Tier)


@pytest.mark.parametrize(
    ("action", "risk", "radius", "reversibility", "overrides", "tier"),
    [
        ("MUTATE", "MEDIUM", "ORG", 0.70, 0, Tier.PROPOSE_ONLY),
        ("MUTATE", "MEDIUM", "ORG", 0.65, 0, Tier.PRINCIPAL_APPROVAL_REQUIRED),
        ("MUTATE", "MEDIUM", "ORG", 0.70, 3, Tier.PRINCIPAL_APPROVAL_REQUIRED),
        ("MUTATE", "MEDIUM", "ORG", 0.70, 2, Tier.PROPOSE_ONLY),
        ("MUTATE", "LOW", "LOCAL", 0.90, 0, Tier.FULL_AUTO),
        ("MUTATE", "LOW", "LOCAL", 0.89, 0, Tier.PROPOSE_ONLY),
        ("MUTATE", "LOW", "CIVILIZATIONAL", 1.0, 0, Tier.HOLD),
        ("MUTATE", "ATOMIC", "LOCAL", 0.49, 0, Tier.HOLD),
        ("MUTATE", "HIGH", "PUBLIC", 0.30, 0, Tier.PRINCIPAL_APPROVAL_REQUIRED),
        ("OBSERVE", "ATOMIC", "CIVILIZATIONAL", 0.30, 5, Tier.FULL_AUTO),
        ("OBSERVE", "LOW", "LOCAL", 0.29, 0, Tier.HOLD),
    ],
)
def test_the_table_gives_the_known_answers(action, risk, radius, reversibility, overrides, tier):
    assert e7(action, risk, radius, reversibility, overrides) is tier


@given(st.sampled_from(ACTIONS), st.sampled_from(RISKS), st.sampled_from(RADII), st.floats(0, 0.2999))
def test_nothing_that_cannot_be_reversed_goes_ahead(action, risk, radius, reversibility):
    assert e7(action, risk, radius, reversibility) is Tier.HOLD


@pytest.mark.parametrize(
    "inputs",
    [
        ("UNKNOWN", "LOW", "LOCAL", 1.0),
        ("observe", "LOW", "LOCAL", 1.0),
        ("PRINCIPAL", "LOW", "LOCAL", 1.0),
        ("OBSERVE", "NONE", "LOCAL", 1.0),
        ("OBSERVE", "LOW", "UNKNOWN", 1.0),
        ("OBSERVE", "LOW", "LOCAL", float("nan")),
    ],
)
def test_what_is_not_known_holds(inputs):
    assert e7(*inputs) is Tier.HOLD


@given(
    st.sampled_from(ACTIONS),
    st.sampled_from(RISKS),
    st.sampled_from(RADII),
    st.floats(0, 1),
    st.integers(0, 5),
)
def test_overrides_and_less_reversibility_never_loosen(action, risk, radius, reversibility, overrides):
    tier = ORDER.index(e7(action, risk, radius, reversibility, overrides))
    assert ORDER.index(e7(action, risk, radius, reversibility, overrides + 1)) >= tier
    assert ORDER.index(e7(action, risk, radius, reversibility / 2, overrides)) >= tier


@given(
    st.sampled_from(["AUTONOMOUS", "PROPOSE_ONLY", "NEVER"]),
    st.sampled_from(ACTIONS),
    st.sampled_from(RISKS),
    st.sampled_from(RADII),
    st.floats(0, 1),
)
def test_a_clearance_is_never_looser_than_either_voice(band, action, risk, radius, reversibility):
    given_ = clearance(
        envelope(
            autonomy_band=band,
            action_class=action,
            risk_tier=risk,
            blast_radius=radius,
            reversibility=reversibility,
        )
    )
    bands = ["AUTONOMOUS", "PROPOSE_ONLY", "NEVER"]
    granted = {"FULL_AUTO": 0, "PROPOSE_ONLY": 1, "PRINCIPAL_APPROVAL_REQUIRED": 1, "HOLD": 2}[given_.tier]
    assert bands.index(given_.band) == max(bands.index(band), granted)
    assert given_.hold == (band == "NEVER" or given_.tier in (Tier.HOLD, Tier.PRINCIPAL_APPROVAL_REQUIRED))


def test_a_band_looser_than_e7_is_clamped_and_says_so():
    given_ = clearance(
        envelope(autonomy_band="AUTONOMOUS", action_class="MUTATE", risk_tier="MEDIUM", blast_radius="ORG")
    )
    assert (given_.band, given_.clamped, given_.hold) == ("PROPOSE_ONLY", True, False)
    assert "AUTONOMOUS" in given_.reason


def test_a_band_that_e7_allows_stays_as_declared():
    given_ = clearance(envelope())
    assert (given_.band, given_.clamped, given_.reason) == ("AUTONOMOUS", False, "as declared")
