//! Paths as text. Nothing here looks at a file system.

use std::path::PathBuf;

/// `path` below `/`, without `.`, `..` (which cannot leave `/`) and empty components.
///
/// Lexical cleaning says nothing about where a path leads when symbolic links are involved; it is for comparing
/// what the configuration says, and for names that are resolved within a root afterwards.
pub(crate) fn absolute(path: &str) -> PathBuf {
    let mut clean: Vec<&str> = Vec::new();
    for component in path.split('/') {
        match component {
            "" | "." => {}
            ".." => {
                clean.pop();
            }
            name => clean.push(name),
        }
    }
    PathBuf::from(format!("/{}", clean.join("/")))
}

/// Whether a system call cannot take `text` at all.
pub(crate) fn has_nul(text: &str) -> bool {
    text.contains('\0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned_below_the_root() {
        for (path, clean) in [
            ("", "/"),
            ("/", "/"),
            ("a", "/a"),
            ("/a/./b//c/", "/a/b/c"),
            ("/a/../b", "/b"),
            ("../../a", "/a"),
            ("/..", "/"),
            ("...", "/..."),
        ] {
            assert_eq!(absolute(path).to_str(), Some(clean), "{path}");
        }
    }
}
