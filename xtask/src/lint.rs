//! Limits that clippy has no lint for: the length of files and functions, and where unsafe code may be.

mod source;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use source::Source;

/// Non-test lines of a file.
const FILE: usize = 600;

/// Lines of a function outside tests, from its signature to its closing brace.
const FUNCTION: usize = 80;

/// In a comment above a function it lifts [`FUNCTION`], in a comment at the top of a file [`FILE`]: a table is not harder to read
/// for being long.
const TABLE: &str = "lint: table";

/// The only folder with unsafe code.
const UNSAFE: &str = "crates/sys";

/// Folders with Rust code. The whole-binary tests are not measured, like all other tests, but they are without unsafe code.
const FOLDERS: [&str; 5] = ["bench", "crates", "fuzz", "tests", "xtask"];

/// Checks the sources below the current folder, which is the top of the work tree when cargo runs it.
pub fn run(_: &[String]) -> Result<(), Box<dyn Error>> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        collect(Path::new(folder), &mut files)?;
    }
    files.sort();
    let mut problems = Vec::new();
    for file in &files {
        let text =
            fs::read_to_string(file).map_err(|error| format!("reading {}: {error}", file.display()))?;
        problems.extend(
            check(file, &text).into_iter().map(|(line, what)| format!("{}:{line}: {what}", file.display())),
        );
    }
    if problems.is_empty() {
        eprintln!("{} files are within the limits", files.len());
        return Ok(());
    }
    Err(format!("{} to mend:\n{}", problems.len(), problems.join("\n")).into())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder).map_err(|error| format!("reading {}: {error}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// Line numbers and what is wrong there.
fn check(path: &Path, text: &str) -> Vec<(usize, String)> {
    let source = Source::new(text);
    let mut problems = Vec::new();
    if !path.starts_with(UNSAFE) {
        problems.extend(
            source.lines_with("unsafe").map(|line| (line, format!("unsafe code is in {UNSAFE} only"))),
        );
    }
    if is_test(path) {
        return problems;
    }
    let tests = source.test_lines();
    let lines = text.lines().count() - tests.iter().map(|range| range.clone().count()).sum::<usize>();
    if lines > FILE && !source.head_says(TABLE) {
        problems.push((
            1,
            format!("{lines} lines that are not tests, {FILE} are the limit: split the file by concern"),
        ));
    }
    for function in source.functions() {
        let lines = function.lines.clone().count();
        let tested = tests.iter().any(|range| range.contains(function.lines.start()));
        if lines > FUNCTION && !tested && !source.said_above(*function.lines.start(), TABLE) {
            problems.push((
                *function.lines.start(),
                format!("fn {} has {lines} lines, {FUNCTION} are the limit", function.name),
            ));
        }
    }
    problems
}

/// Whether a whole file is a test, or help for tests.
fn is_test(path: &Path) -> bool {
    let mut parts = path.components().map(|part| part.as_os_str());
    parts.any(|part| part == "tests" || part == "tests.rs" || part == "testing.rs")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::check;

    fn problems(path: &str, text: &str) -> Vec<String> {
        let found = check(Path::new(path), text);
        found.into_iter().map(|(line, what)| format!("{line}: {what}")).collect()
    }

    fn function(lines: usize) -> String {
        format!("fn long(a: [u8; 3])\n{{\n{}}}\n", "    let _ = \"}\";\n".repeat(lines - 3))
    }

    #[test]
    fn functions_have_a_limit() {
        assert!(problems("crates/a/src/b.rs", &function(80)).is_empty());
        let found = problems("crates/a/src/b.rs", &format!("\n{}", function(81)));
        assert_eq!(found, ["2: fn long has 81 lines, 80 are the limit"]);
        let table = format!("// lint: table\n#[rustfmt::skip]\n{}", function(200));
        assert!(problems("crates/a/src/b.rs", &table).is_empty());
        assert!(problems("crates/a/tests/b.rs", &function(200)).is_empty());
        let test = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function(200));
        assert!(problems("crates/a/src/b.rs", &test).is_empty());
    }

    #[test]
    fn files_have_a_limit() {
        let lines = "// a\n".repeat(601);
        assert_eq!(
            problems("crates/a/src/b.rs", &lines),
            ["1: 601 lines that are not tests, 600 are the limit: split the file by concern"]
        );
        assert!(problems("crates/a/src/b.rs", &format!("// Generated; lint: table\n{lines}")).is_empty());
        assert!(problems("crates/a/src/b/tests.rs", &lines).is_empty());
    }

    #[test]
    fn unsafe_code_has_its_place() {
        let text = "// unsafe\nfn a() { let a = \"unsafe\"; unsafe { b() } }\n#![deny(unsafe_code)]\n";
        assert_eq!(problems("tests/suite/a.rs", text), ["2: unsafe code is in crates/sys only"]);
        assert!(problems("crates/sys/src/a.rs", text).is_empty());
    }
}
