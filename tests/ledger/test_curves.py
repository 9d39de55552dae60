"""Curves as the learned weights give them."""

from __future__ import annotations

import pytest

from holdfast.ledger.curves import Curve, along
from holdfast.ledger.learned import learned
from holdfast.ledger.line_worth import OWN, SHARED, line_curves
from holdfast.ledger.name_worth import NAME_FEATURES, name_weights

POINTS = [(1.0, 0.0), (2.0, 4.0), (4.0, -2.0)]


@pytest.mark.parametrize(
    ("value", "adds"), [(0.0, 0.0), (1.0, 0.0), (1.5, 2.0), (2.0, 4.0), (3.0, 1.0), (4.0, -2.0), (9.0, -2.0)]
)
def test_it_is_straight_between_its_points_and_level_beyond(value: float, adds: float) -> None:
    assert along([Curve.of(POINTS)], [value]) == pytest.approx(adds)


def test_a_weight_is_a_curve_without_bends() -> None:
    assert along([Curve.of(0.5), Curve.of(POINTS)], [-3.0, 2.0]) == pytest.approx(2.5)


def test_every_feature_has_been_learned() -> None:
    curves = line_curves((*SHARED, *OWN))
    assert len(name_weights()) == len(NAME_FEATURES)
    assert all(list(curve.ends) == sorted(set(curve.ends)) for curve in curves)
    assert set(learned()["lines"]) == {*SHARED, *OWN}
