use super::*;
use crate::kernels::testing::Random;

/// Whatever the bounds, no row that belongs to the largest is left out, ties included.
#[test]
fn candidates_hold_the_largest() {
    let mut random = Random(7);
    for round in 0..400 {
        let rows = 1 + random.below(700);
        let most = 1 + random.below(30);
        let width = [0.0, 0.01, 0.5][round % 3];
        // Few different values in some rounds, so that many are equal.
        let steps = [5.0, 1000.0][round % 2];
        let exact: Vec<f32> =
            (0..rows).map(|_| (random.uniform(-1.0, 1.0) * steps).round() / steps).collect();
        let lows: Vec<f32> = exact.iter().map(|x| x - random.uniform(0.0, 1.0) * width).collect();
        let highs: Vec<f32> = exact.iter().map(|x| x + random.uniform(0.0, 1.0) * width).collect();
        let (mut bounds, mut candidates) = (Vec::new(), Vec::new());
        if !candidates_of(&lows, &highs, most, &mut bounds, &mut candidates) {
            continue;
        }
        let mut sorted = exact.clone();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let last = sorted[most - 1];
        for (row, &value) in exact.iter().enumerate() {
            let kept = candidates.contains(&(row as u32));
            assert!(kept || value < last, "row {row}: {value} reaches {last}");
        }
        assert!(candidates.is_sorted());
    }
}

#[test]
fn no_candidates_without_an_order() {
    let (mut bounds, mut candidates) = (Vec::new(), Vec::new());
    let mut given = |lows: &[f32], most| {
        bounds.clear();
        candidates.clear();
        candidates_of(lows, lows, most, &mut bounds, &mut candidates)
    };
    // In four groups of which each has one that stands out.
    let mut lows: Vec<f32> =
        (0..64).map(|n| if n % 16 == 0 { 100.0 + n as f32 } else { 1.0 }).collect();
    assert!(given(&lows, 1) && given(&lows, 4));
    let rising: Vec<f32> = (0..64).map(|n| n as f32).collect();
    assert!(given(&rising, 1) && !given(&rising, 4), "most rows reach the weakest group's best");
    assert!(!given(&lows, 5), "more than there are groups");
    assert!(!given(&[0.0; 64], 1), "all equal: too many");
    assert!(!given(&[f32::NEG_INFINITY; 64], 1), "none left");
    lows[3] = f32::NAN;
    assert!(!given(&lows, 1));
}
