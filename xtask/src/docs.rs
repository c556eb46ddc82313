//! Keeps the tables of `docs/` true: what they name is there, and what is there they name.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// Has a row for each field of the specification.
const CONFORMANCE: &str = "docs/conformance.md";

/// Tables whose last column names tests.
const TABLES: [&str; 2] = [CONFORMANCE, "docs/kernel-features.md"];

/// Areas of tests that are not those of a crate.
const AREAS: [&str; 4] = ["attack", "clients", "kill", "suite"];

/// Checks the tables below the current folder, which is the top of the work tree when cargo runs it.
pub fn run(_: &[String]) -> Result<(), Box<dyn Error>> {
    let problems = problems(Path::new("."))?;
    if problems.is_empty() {
        return Ok(());
    }
    Err(format!("{} to mend:\n{}", problems.len(), problems.join("\n")).into())
}

fn problems(top: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let tests = Tests::find(top)?;
    let mut problems = Vec::new();
    for file in TABLES {
        let text = fs::read_to_string(top.join(file)).map_err(|error| format!("reading {file}: {error}"))?;
        let rows = rows(&text);
        for row in &rows {
            let place = format!("{file}:{}", row.line);
            if row.tests().next().is_none() {
                problems.push(format!("{place}: no test"));
            }
            for name in row.tests() {
                if let Some(why) = tests.complaint(name) {
                    problems.push(format!("{place}: {name} {why}"));
                }
            }
        }
        if file == CONFORMANCE {
            problems.extend(fields(file, &rows));
        }
    }
    Ok(problems)
}

/// Each field has one row, and each row of the tables of fields is about one.
fn fields(file: &str, rows: &[Row<'_>]) -> Vec<String> {
    let known: BTreeSet<String> = brig_spec::fields::<brig_spec::Spec>().into_iter().collect();
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut problems = Vec::new();
    for row in rows.iter().filter(|row| row.header == "field") {
        let path = row.cells.first().map_or("", |cell| cell.trim_matches('`'));
        if let Some(first) = seen.insert(path, row.line) {
            problems.push(format!("{file}:{}: {path} has a row already, in line {first}", row.line));
        }
        if !known.contains(path) {
            problems.push(format!("{file}:{}: there is no field {path}", row.line));
        }
    }
    let missing = known.iter().filter(|path| !seen.contains_key(path.as_str()));
    problems.extend(missing.map(|path| format!("{file}: no row for {path}")));
    problems
}

/// A row of a table whose last column is called `test`.
#[derive(Debug)]
struct Row<'a> {
    line: usize,
    /// What the first column is called.
    header: &'a str,
    cells: Vec<&'a str>,
}

impl<'a> Row<'a> {
    /// The names in the last column.
    fn tests(&self) -> impl Iterator<Item = &'a str> {
        let last = self.cells.last().copied().unwrap_or_default();
        last.split('`').skip(1).step_by(2)
    }
}

fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

fn rows(text: &str) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    let mut header: Option<Vec<&str>> = None;
    for (number, line) in text.lines().enumerate() {
        let Some(cells) = cells(line) else {
            header = None;
            continue;
        };
        match &header {
            None => header = Some(cells),
            Some(_) if cells.iter().all(|cell| cell.chars().all(|c| matches!(c, '-' | ':' | ' '))) => {}
            Some(header) => {
                let named = header.last().is_some_and(|name| name.eq_ignore_ascii_case("test"));
                if let (true, Some(first)) = (named, header.first()) {
                    rows.push(Row { line: number + 1, header: first, cells });
                }
            }
        }
    }
    rows
}

/// The tests of the work tree: by name, where each is, and whether it is left out.
#[derive(Debug, Default)]
struct Tests(BTreeMap<String, Vec<(PathBuf, bool)>>);

impl Tests {
    fn find(top: &Path) -> Result<Self, Box<dyn Error>> {
        let mut tests = Self::default();
        for folder in ["crates", "tests", "xtask"] {
            tests.collect(top, &top.join(folder))?;
        }
        Ok(tests)
    }

    fn collect(&mut self, top: &Path, folder: &Path) -> Result<(), Box<dyn Error>> {
        for entry in fs::read_dir(folder).map_err(|error| format!("reading {}: {error}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                self.collect(top, &path)?;
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path)?;
                let short = path.strip_prefix(top).unwrap_or(&path).to_owned();
                for (name, ignored) in in_file(&text) {
                    self.0.entry(name.to_owned()).or_default().push((short.clone(), ignored));
                }
            }
        }
        Ok(())
    }

    /// What is wrong with a name such as `suite::mounts::kinds::tmpcopyup` or `plan::root::tests::a_root_is_needed`.
    fn complaint(&self, name: &str) -> Option<&'static str> {
        let parts: Vec<&str> = name.split("::").collect();
        let [area, modules @ .., function] = parts.as_slice() else {
            return Some("is not the name of a test");
        };
        let folder = if AREAS.contains(area) { Path::new("tests") } else { Path::new("crates") }.join(area);
        let folder = if *area == "xtask" { PathBuf::from("xtask") } else { folder };
        let here = |path: &Path| {
            path.starts_with(&folder)
                && modules.iter().filter(|module| **module != "tests").all(|module| {
                    path.iter().any(|part| Path::new(part).file_stem().is_some_and(|stem| stem == *module))
                })
        };
        let found: Vec<bool> = self
            .0
            .get(*function)
            .into_iter()
            .flatten()
            .filter(|(path, _)| here(path))
            .map(|(_, ignored)| *ignored)
            .collect();
        match found.as_slice() {
            [] => Some("is no test"),
            found if found.iter().all(|ignored| *ignored) => Some("is left out (#[ignore])"),
            _ => None,
        }
    }
}

/// The names of tests, and whether each is left out.
fn in_file(text: &str) -> Vec<(&str, bool)> {
    let mut found = Vec::new();
    let (mut test, mut ignored) = (false, false);
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[test]") {
            (test, ignored) = (true, false);
        } else if line.starts_with("#[ignore") {
            ignored = true;
        } else if let Some(rest) = line.strip_prefix("fn ") {
            if test {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                found.push((rest.get(..end).unwrap_or_default(), ignored));
            }
            test = false;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_true() {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let problems = problems(top).unwrap();
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }

    #[test]
    fn rows_are_those_of_tables_with_tests() {
        let text = "# A\n\n| field | status | test |\n|---|---|---|\n| `a.b` | yes | `x::y` `z::w` |\n| `c` | no | |\n\n\
            | word | why |\n|---|---|\n| `d` | `e` |\n";
        let rows = rows(text);
        assert_eq!(rows.iter().map(|row| row.line).collect::<Vec<_>>(), [5, 6]);
        assert_eq!(rows[0].tests().collect::<Vec<_>>(), ["x::y", "z::w"]);
        assert_eq!(rows[1].tests().count(), 0);
        assert_eq!(rows[0].header, "field");
    }

    #[test]
    fn tests_are_found_by_their_names() {
        let text = "#[test]\nfn one() {}\nfn helper() {}\n#[test]\n#[ignore = \"x\"]\nfn two() {\n}\n";
        assert_eq!(in_file(text), [("one", false), ("two", true)]);
        let place = PathBuf::from("tests/suite/mounts/kinds.rs");
        let tests = Tests(
            [("one", false), ("two", true)]
                .map(|(name, ignored)| (name.to_owned(), vec![(place.clone(), ignored)]))
                .into(),
        );
        assert_eq!(tests.complaint("suite::mounts::kinds::one"), None);
        assert_eq!(tests.complaint("suite::kinds::one"), None);
        assert_eq!(tests.complaint("suite::cli::one"), Some("is no test"));
        assert_eq!(tests.complaint("plan::one"), Some("is no test"));
        assert_eq!(tests.complaint("suite::mounts::kinds::two"), Some("is left out (#[ignore])"));
        assert_eq!(tests.complaint("one"), Some("is not the name of a test"));
    }

    #[test]
    fn every_field_needs_a_row() {
        let text =
            "| field | test |\n|---|---|\n| `root.path` | `x` |\n| `root.path` | `x` |\n| `root.x` | `x` |\n";
        let problems = fields("F", &rows(text));
        assert!(problems.contains(&"F:4: root.path has a row already, in line 3".to_owned()), "{problems:?}");
        assert!(problems.contains(&"F:5: there is no field root.x".to_owned()));
        assert!(problems.contains(&"F: no row for linux.seccomp.flags".to_owned()));
    }
}
