//! Medians and quartiles.

/// Median and quartiles of some measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    pub low: f64,
    pub median: f64,
    pub high: f64,
}

/// Of at least one value; between two values the nearer one counts half and half.
pub fn spread(values: &[f64]) -> Spread {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |quarter: usize| {
        let place = (sorted.len() - 1) * quarter;
        let (index, rest) = (place / 4, place % 4);
        let next = sorted.get(index + 1).unwrap_or(&sorted[index]);
        let share = [0.0, 0.25, 0.5, 0.75][rest];
        sorted[index] * (1.0 - share) + next * share
    };
    Spread { low: at(1), median: at(2), high: at(3) }
}

/// The median of the ratios of two series that were measured in turn.
pub fn ratio(these: &[f64], to_those: &[f64]) -> f64 {
    let ratios: Vec<f64> = these.iter().zip(to_those).map(|(a, b)| a / b).collect();
    spread(&ratios).median
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles() {
        assert_eq!(spread(&[3.0, 1.0, 2.0, 5.0, 4.0]), Spread { low: 2.0, median: 3.0, high: 4.0 });
        assert_eq!(spread(&[1.0, 2.0]), Spread { low: 1.25, median: 1.5, high: 1.75 });
        assert_eq!(spread(&[7.0]), Spread { low: 7.0, median: 7.0, high: 7.0 });
    }

    #[test]
    fn ratios_are_taken_in_pairs() {
        assert!((ratio(&[2.0, 40.0, 6.0], &[1.0, 10.0, 3.0]) - 2.0).abs() < 1e-9);
    }
}
