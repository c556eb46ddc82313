//! What `--version` prints.

use std::fmt::Write as _;

/// The runc whose command line and behaviour this program follows, and itself behind the plus sign.
///
/// Clients take the first line of `--version` for `runc version N.N.N[-suffix]` and compare versions by it.
pub const COMPATIBLE: &str = concat!("1.5.0+brig.", env!("CARGO_PKG_VERSION"));

/// This program's own version.
pub const OWN: &str = env!("CARGO_PKG_VERSION");

/// The commit it was built from, where the build knew.
pub const COMMIT: Option<&str> = option_env!("BRIG_COMMIT");

/// The answer to `--version`.
///
/// Clients take what follows the *last* line with the word "version", so that only the first may have it.
pub fn text() -> String {
    let mut text = format!("runc version {COMPATIBLE}\n");
    if let Some(commit) = COMMIT.filter(|commit| !commit.is_empty()) {
        let _ = writeln!(text, "commit: {commit}");
    }
    let _ = writeln!(text, "spec: {}", brig_spec::OCI_VERSION);
    let _ = writeln!(text, "brig: {OWN}");
    text
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn lines_are_what_clients_parse() {
        let text = text();
        let lines: Vec<&str> = text.lines().collect();
        let version = lines[0].strip_prefix("runc version ").unwrap();
        let numbers: Vec<&str> = version.split(['.', '+']).take(3).collect();
        assert!(numbers.iter().all(|part| part.parse::<u32>().is_ok()), "{version}");
        assert!(lines.iter().skip(1).all(|line| !line.contains("version")), "{text}");
        assert!(lines.contains(&"spec: 1.3.0"), "{text}");
        assert!(text.ends_with('\n'));
    }
}
