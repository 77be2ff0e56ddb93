"""E7: how much autonomy an action may have as its risk grows (protocols.md 3.5). Bands only ever tighten."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from council_tui.domain.envelope import Band, Envelope


class Tier(StrEnum):
    """E7's verdicts, loosest first."""

    FULL_AUTO = "FULL_AUTO"
    PROPOSE_ONLY = "PROPOSE_ONLY"
    PRINCIPAL_APPROVAL_REQUIRED = "PRINCIPAL_APPROVAL_REQUIRED"
    HOLD = "HOLD"


_ORDER = list(Tier)
_A, _P, _R, _H = Tier.FULL_AUTO, Tier.PROPOSE_ONLY, Tier.PRINCIPAL_APPROVAL_REQUIRED, Tier.HOLD
_RADII = ("LOCAL", "ACCOUNT", "ORG", "PUBLIC", "MARKET", "INFRASTRUCTURE", "CIVILIZATIONAL")
_TABLE: dict[str, tuple[tuple[Tier, float], ...]] = {
    "LOW": ((_A, 0.9), (_A, 0.85), (_P, 0.8), (_P, 0.7), (_R, 0.6), (_R, 0.5), (_H, 0.0)),
    "MEDIUM": ((_A, 0.7), (_P, 0.7), (_P, 0.7), (_R, 0.5), (_R, 0.5), (_H, 0.0), (_H, 0.0)),
    "HIGH": ((_P, 0.5), (_R, 0.5), (_R, 0.5), (_R, 0.3), (_H, 0.0), (_H, 0.0), (_H, 0.0)),
    "ATOMIC": ((_R, 0.5), (_R, 0.5), (_R, 0.3), (_H, 0.0), (_H, 0.0), (_H, 0.0), (_H, 0.0)),
}
_ACTIONS = ("OBSERVE", "ANALYZE", "DRAFT", "SIMULATE", "MUTATE", "EXTERNAL_SIDE_EFFECT", "IRREVERSIBLE")
_MIN_REVERSIBILITY = 0.3


@dataclass(frozen=True)
class Clearance:
    """The effective band of an envelope and how it came about."""

    band: Band
    tier: Tier
    hold: bool
    """True parks the card for the Principal instead of starting it."""
    clamped: bool
    """True when the declared band was looser than E7 allows."""
    reason: str


def _down(tier: Tier, steps: int = 1) -> Tier:
    return _ORDER[min(_ORDER.index(tier) + steps, len(_ORDER) - 1)]


def e7(action_class: str, risk_tier: str, blast_radius: str, reversibility: float, recent_overrides: int = 0) -> Tier:
    """The tier of an action; unknown inputs hold. Nobody bypasses it by claiming to be the Principal."""
    # Written so that a reversibility that is no number holds as well.
    if not reversibility >= _MIN_REVERSIBILITY or action_class not in _ACTIONS or blast_radius not in _RADII:
        return Tier.HOLD
    row = _TABLE.get(risk_tier)
    if row is None:
        return Tier.HOLD
    tier, floor = row[_RADII.index(blast_radius)]
    if tier is not Tier.HOLD and reversibility < floor:
        tier = _down(tier)
    if recent_overrides >= 3:
        tier = _down(tier)
    return Tier.FULL_AUTO if action_class == "OBSERVE" else tier


def clearance(envelope: Envelope, recent_overrides: int = 0) -> Clearance:
    """The stricter of what the envelope declares and what E7 grants (protocols.md 7, ruling 10)."""
    tier = e7(
        envelope.action_class,
        envelope.risk_tier,
        envelope.blast_radius,
        envelope.reversibility,
        recent_overrides,
    )
    declared = {"AUTONOMOUS": Tier.FULL_AUTO, "PROPOSE_ONLY": Tier.PROPOSE_ONLY, "NEVER": Tier.HOLD}[
        envelope.autonomy_band
    ]
    effective = max(tier, declared, key=_ORDER.index)
    clamped = _ORDER.index(declared) < _ORDER.index(tier)
    if effective is Tier.HOLD:
        why = "the band is NEVER" if declared is Tier.HOLD else "E7 holds an action of this risk"
        return Clearance("NEVER", tier, True, clamped, f"{why}; only the Principal releases it")
    if effective is Tier.PRINCIPAL_APPROVAL_REQUIRED:
        return Clearance("PROPOSE_ONLY", tier, True, clamped, "E7 asks for the Principal's approval first")
    band: Band = "AUTONOMOUS" if effective is Tier.FULL_AUTO else "PROPOSE_ONLY"
    reason = f"declared {envelope.autonomy_band}, E7 allows {band}" if clamped else "as declared"
    return Clearance(band, tier, False, clamped, reason)
