//! Lists of numbers such as `0-3,7`, see cpuset(7).

/// No machine has more CPUs or NUMA nodes; it bounds what a configuration can make the runtime allocate.
const MAX: usize = 65536;

/// Reads a list. Blanks around its elements and empty elements are allowed; the result is in order and unique.
///
/// # Errors
///
/// What is wrong, as text.
pub(crate) fn parse(text: &str) -> Result<Vec<usize>, String> {
    let mut ranges = Vec::new();
    for element in text.split(',').map(str::trim).filter(|element| !element.is_empty()) {
        let (first, last) = match element.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(element)?, number(element)?),
        };
        if first > last {
            return Err(format!("invalid range: {element}"));
        }
        ranges.push((first, last));
    }
    ranges.sort_unstable();
    let mut numbers: Vec<usize> = Vec::new();
    for (first, last) in ranges {
        let next = numbers.last().map_or(0, |highest| highest + 1);
        numbers.extend(first.max(next)..=last);
    }
    if numbers.is_empty() {
        return Err(format!("no members found in set {text:?}"));
    }
    Ok(numbers)
}

fn number(text: &str) -> Result<usize, String> {
    match text.parse() {
        // `parse` takes a sign.
        Ok(number) if number <= MAX && !text.starts_with('+') => Ok(number),
        Ok(number) if number > MAX => Err(format!("values larger than {MAX} are not supported")),
        _ => Err(format!("invalid number: {text:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        assert_eq!(parse("0"), Ok(vec![0]));
        assert_eq!(parse("3,0-1"), Ok(vec![0, 1, 3]));
        assert_eq!(parse(" 1-2 ,, 2-3,"), Ok(vec![1, 2, 3]));
        assert_eq!(parse("0-5,1-2,7"), Ok(vec![0, 1, 2, 3, 4, 5, 7]));
        assert_eq!(parse("65536"), Ok(vec![65536]));
    }

    #[test]
    fn bad_lists_are_refused() {
        assert_eq!(parse(",").unwrap_err(), "no members found in set \",\"");
        assert_eq!(parse("3-1").unwrap_err(), "invalid range: 3-1");
        assert_eq!(parse("65537").unwrap_err(), "values larger than 65536 are not supported");
        for bad in ["a", "-1", "+1", "1-", "1-2-3", "0x1", "1 - 2"] {
            assert!(parse(bad).unwrap_err().starts_with("invalid number: "), "{bad}");
        }
    }

    #[test]
    fn repetition_costs_nothing() {
        assert_eq!(parse(&"0-65536,".repeat(1000)).unwrap().len(), 65537);
    }
}
