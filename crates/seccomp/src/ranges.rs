//! System call numbers, cut where what they lead to changes.

/// What a number leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// A verdict.
    Verdict(u32),
    /// Conditions, by their index in a list.
    Tree(usize),
}

/// Numbers that follow each other and lead to the same: from `start` up to the start of the next range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) start: u32,
    pub(crate) target: Target,
    /// How many system calls the profile names in it, and one.
    pub(crate) weight: u32,
}

/// All numbers; the first range starts at 0.
#[derive(Debug, Default)]
pub(crate) struct Ranges(Vec<Range>);

impl Ranges {
    /// The ranges.
    pub(crate) fn as_slice(&self) -> &[Range] {
        &self.0
    }

    /// Sets what `start` and all after it lead to. Starts must not decrease.
    pub(crate) fn from(&mut self, start: u32, target: Target) {
        self.push(start, target, 1);
    }

    /// Sets what one number leads to. All after it lead to `rest`.
    pub(crate) fn one(&mut self, number: u32, target: Target, rest: Target) {
        self.push(number, target, 2);
        if let Some(next) = number.checked_add(1) {
            self.push(next, rest, 1);
        }
    }

    fn push(&mut self, start: u32, target: Target, weight: u32) {
        self.0.pop_if(|last| last.start == start);
        match self.0.last_mut() {
            Some(last) if last.target == target => last.weight += weight - 1,
            _ => self.0.push(Range { start, target, weight }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_neighbours_merge() {
        let (yes, no) = (Target::Verdict(1), Target::Verdict(0));
        let mut ranges = Ranges::default();
        ranges.from(0, no);
        for number in [0, 1, 2, 5, 6, 9] {
            ranges.one(number, yes, no);
        }
        ranges.from(10, Target::Tree(0));
        ranges.from(u32::MAX, no);
        ranges.one(u32::MAX, yes, no);
        let expected = [
            (0, yes, 4),
            (3, no, 1),
            (5, yes, 3),
            (7, no, 1),
            (9, yes, 2),
            (10, Target::Tree(0), 1),
            (u32::MAX, yes, 2),
        ];
        let expected = expected.map(|(start, target, weight)| Range { start, target, weight });
        assert_eq!(ranges.as_slice(), expected);
    }
}
