//! Finds what somebody meant to write.

/// The candidate that `word` is a slip of: most letters are the same, whatever their case.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    // One slip in three letters; the shortest names differ in everything.
    let most = (word.chars().count() / 3).clamp(1, 4);
    let distance = |candidate: &'a str| (distance(&word, &candidate.to_lowercase()), candidate);
    let near = candidates.into_iter().map(distance).filter(|(distance, _)| *distance <= most);
    near.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

/// Letters to insert, delete, replace or swap with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let at = |row: &[usize], place: usize| row.get(place).copied().unwrap_or(usize::MAX - 1);
            let replaced = at(&last, j) + usize::from(x != y);
            let mut best = replaced.min(at(&last, j + 1) + 1).min(at(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if swapped {
                best = best.min(at(&before_last, j - 1) + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_counted() {
        for (a, b, expected) in [
            ("", "", 0),
            ("abc", "", 3),
            ("abc", "abc", 0),
            ("abc", "acb", 1),
            ("resource", "resources", 1),
            ("ab", "cd", 2),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn the_nearest_is_found() {
        let known = ["resources", "readonlyPaths", "maskedPaths", "path", "cgroupsPath"];
        let of = |word| nearest(word, known);
        assert_eq!(of("resource"), Some("resources"));
        assert_eq!(of("cgroupPath"), Some("cgroupsPath"));
        assert_eq!(of("READONLY_paths"), Some("readonlyPaths"));
        assert_eq!(of("pth"), Some("path"));
        assert_eq!(of("com.example.thing"), None);
        assert_eq!(of(""), None);
    }
}
