//! The configurations in `docs/install.md`, for the tests to use what readers are told to.

use std::path::Path;

/// The first block of a language in a chapter, with the runtime under test in brig's place.
pub fn snippet(chapter: &str, language: &str, runtime: &Path) -> String {
    let text = include_str!("../../docs/install.md");
    let (_, chapter_text) = text.split_once(&format!("\n## {chapter}\n")).expect(chapter);
    let chapter_text = chapter_text.split("\n## ").next().unwrap();
    let (_, block) = chapter_text.split_once(&format!("\n```{language}\n")).expect(language);
    let (block, _) = block.split_once("```").unwrap();
    block.replace("/usr/local/bin/brig", runtime.to_str().unwrap())
}

/// Adds lines to a table of a TOML document, which must have it once.
pub fn with_lines(toml: &str, table: &str, lines: &str) -> String {
    let header = format!("{table}\n");
    assert_eq!(toml.matches(&header).count(), 1, "{table} in {toml}");
    toml.replace(&header, &format!("{header}{lines}\n"))
}
