"""What curves say of their ends."""

from __future__ import annotations

import numpy as np
import pytest

from raybo.study.curves import Course, expected_losses

RNG = np.random.default_rng(0)


def courses(n: int, noise: float, slow: float = 0.0, columns: int = 2) -> list[Course]:
    """Trials that have ended: loss at the end, and at step 5 the same, later ones by `slow`."""
    found = []
    for _ in range(n):
        row, end = RNG.random(columns), float(RNG.normal())
        early = end + noise * float(RNG.normal()) + (slow * float(row[0]) if columns else 0.0)
        found.append(Course(row, {2: early + 1.0, 5: early, 10: end}, end))
    return found


def cut(course: Course) -> Course:
    """The trial as it stood at step 5."""
    return Course(course.row, {s: v for s, v in course.curve.items() if s <= 5})


def errors(ended: list[Course], new: list[Course]) -> tuple[np.ndarray, np.ndarray]:
    loss, spread = expected_losses([*ended, *map(cut, new)])
    assert not spread[: len(ended)].any()
    assert loss[: len(ended)].tolist() == [c.final for c in ended]
    return loss[len(ended) :] - [c.final for c in new], spread[len(ended) :]


def test_losses_that_are_known_are_left_as_they_are() -> None:
    loss, spread = expected_losses(courses(3, 0.1))
    assert len(loss) == 3
    assert not spread.any()


@pytest.mark.parametrize("noise", [0.1, 0.5])
def test_the_deviation_is_that_of_the_errors(noise: float) -> None:
    error, spread = errors(courses(300, noise), courses(300, noise))
    assert 0.7 < np.std(error / spread) < 1.3
    assert np.mean(spread) == pytest.approx(noise, rel=0.4)


def test_curves_that_say_nothing_have_the_deviation_of_the_losses() -> None:
    ended, new = courses(300, 10.0), courses(100, 10.0)
    error, spread = errors(ended, new)
    assert np.std(error) < 1.3
    assert 0.8 < np.mean(spread) < 2.0


def test_configs_that_learn_slowly_are_expected_to_catch_up() -> None:
    error, spread = errors(courses(60, 0.05, slow=3.0), courses(100, 0.05, slow=3.0))
    assert np.std(error) < 0.3
    assert np.mean(spread) < 0.4


def test_before_any_trial_has_ended_a_loss_is_its_own_expectation() -> None:
    running = [cut(c) for c in courses(8, 0.1)]
    loss, spread = expected_losses(running)
    assert loss == pytest.approx([c.curve[5] for c in running])
    assert (spread > 0.0).all()


def test_curves_say_something_also_when_all_that_finish_are_the_same() -> None:
    """A search that has converged: its good configs end alike, the bad ones are stopped."""
    ended = [Course(np.array([0.3, 0.1]), {2: 1.0, 5: 0.5, 10: 0.01 + 1e-6 * i}) for i in range(9)]
    ended = [Course(c.row, c.curve, c.curve[10]) for c in ended]
    worse = [Course(np.array([0.3 + d, 0.1]), {2: 1.0 + d, 5: 0.5 + d}) for d in (0.1, 0.2, 0.4)]
    loss, _ = expected_losses([*ended, *worse])
    assert np.diff(loss[9:]) == pytest.approx([0.1, 0.2], rel=0.5)


def test_far_from_those_that_finished_little_is_known() -> None:
    """A search that has converged: those that finish have much the same config."""
    rows, now = 0.9 + 0.02 * RNG.random((40, 2)), RNG.normal(size=40)
    ended = [Course(r, {5: x, 10: x - 0.5}, x - 0.5) for r, x in zip(rows, now, strict=True)]
    near, far = (Course(np.full(2, at), {5: 0.0}) for at in (0.91, 0.1))
    loss, spread = expected_losses([*ended, near, far])
    assert loss[40] == pytest.approx(-0.5, abs=0.01)
    assert spread[41] > 3.0 * spread[40]


def test_no_curve_is_expected_to_end_worse_than_the_worst_loss_seen() -> None:
    """Those that finish gain more the better they are; the others are far from them."""
    now = np.linspace(0.2, 0.3, 30)
    ended = [Course(np.zeros(2), {6: x, 50: 5 * x - 0.9}, 5 * x - 0.9) for x in now]
    stopped = [Course(np.zeros(2), {6: x}) for x in np.linspace(0.3, 0.9, 40)]
    loss, _ = expected_losses([*ended, *stopped])
    assert 0.4 < loss[30] < 0.6
    assert loss.max() == pytest.approx(0.9)  # by the line of the others about 2


def test_a_box_without_columns_is_regressed_on_the_curve_alone() -> None:
    error, _ = errors(courses(40, 0.1, columns=0), courses(50, 0.1, columns=0))
    assert np.std(error) < 0.2


@pytest.mark.parametrize("huge", [1e300, -1e300])
def test_huge_losses_leave_the_others_finite(huge: float) -> None:
    ended = [*courses(10, 0.1), Course(np.zeros(2), {5: huge, 10: huge}, huge)]
    loss, spread = expected_losses([*ended, cut(ended[0]), cut(ended[-1])])
    assert np.isfinite(loss).all()
    assert np.isfinite(spread).all()
    assert loss[-2] == pytest.approx(ended[0].final or 0.0, abs=1.0)


def test_equal_losses_are_expected_to_stay_equal() -> None:
    same = [Course(np.zeros(1), {5: 1.0, 10: 1.0}, 1.0)] * 3
    loss, _ = expected_losses([*same, cut(same[0])])
    assert loss.tolist() == [1.0] * 4


def test_steps_that_a_curve_lacks_are_those_before() -> None:
    course = Course(np.zeros(1), {3: 3.0, 6: 6.0})
    assert [course.at(step) for step in (1, 3, 5, 6, 9)] == [3.0, 3.0, 3.0, 6.0, 6.0]
