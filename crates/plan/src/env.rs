//! `process.env`.

use std::collections::BTreeSet;

use crate::path::has_nul;
use crate::problem::Problems;

/// Checks the variables, and of each name keeps the last.
///
/// An empty `HOME` is dropped: it would shadow the one from the container's `/etc/passwd`.
pub(crate) fn plan(env: &[String], problems: &mut Problems) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut kept = Vec::with_capacity(env.len());
    for (index, variable) in env.iter().enumerate().rev() {
        let path = || format!("process.env[{index}]");
        let Some((name, value)) = variable.split_once('=') else {
            problems.error(path(), "invalid environment variable: missing '='");
            continue;
        };
        if name.is_empty() {
            problems.error(path(), "invalid environment variable: name cannot be empty");
        } else if has_nul(variable) {
            let message = format!("invalid environment variable {name:?}: contains nul byte (\\x00)");
            problems.error(path(), message);
        } else if seen.insert(name) && !(name == "HOME" && value.is_empty()) {
            kept.push(variable.clone());
        }
    }
    kept.reverse();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan_env(env: &[&str]) -> (Vec<String>, Vec<String>) {
        let mut problems = Problems::default();
        let env: Vec<String> = env.iter().map(|&variable| variable.to_owned()).collect();
        let kept = plan(&env, &mut problems);
        (kept, problems.into_vec().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_last_of_a_name_is_kept_in_its_place() {
        let (kept, problems) = plan_env(&["A=1", "B=1", "A=2", "C=", "B=2"]);
        assert_eq!(kept, ["A=2", "C=", "B=2"]);
        assert!(problems.is_empty());
    }

    #[test]
    fn an_empty_home_is_dropped() {
        assert_eq!(plan_env(&["HOME=", "HOME="]).0, Vec::<String>::new());
        assert_eq!(plan_env(&["HOME=/a", "HOME=/b"]).0, ["HOME=/b"]);
        assert_eq!(plan_env(&["HOME=/a", "HOME="]).0, Vec::<String>::new());
    }

    #[test]
    fn values_may_hold_anything_else() {
        assert_eq!(plan_env(&["A=a\nb=c\u{e9}"]).0, ["A=a\nb=c\u{e9}"]);
    }

    #[test]
    fn what_is_no_variable_is_refused() {
        let of = |variable| plan_env(&["A=1", variable]).1.remove(0);
        assert_eq!(of("B"), "process.env[1]: invalid environment variable: missing '='");
        assert_eq!(of(""), "process.env[1]: invalid environment variable: missing '='");
        assert_eq!(of("=x"), "process.env[1]: invalid environment variable: name cannot be empty");
        assert_eq!(
            of("B=a\0b"),
            "process.env[1]: invalid environment variable \"B\": contains nul byte (\\x00)"
        );
    }
}
