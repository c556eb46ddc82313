//! Paths of the host, made absolute.

use std::env;
use std::path::{Component, Path, PathBuf};

use crate::error::{Error, Kind, os_text};

/// `path` seen from the current directory; see [`clean`].
///
/// # Errors
///
/// The path is relative and the current directory was removed. Absolute paths do not need one: callers clean up
/// from inside of directories that are gone.
pub fn absolute(path: &Path) -> Result<PathBuf, Error> {
    if path.is_absolute() {
        return Ok(clean(Path::new("/"), path));
    }
    let directory = env::current_dir().map_err(|error| {
        let hint = format!("'{}' is relative to the current directory", path.display());
        Error::new(Kind::Host, format!("getwd: {}", os_text(&error))).with_hint(hint)
    })?;
    Ok(clean(&directory, path))
}

/// `path` seen from `directory`, without `.`, `..` and doubled slashes. Symlinks are not looked at: `a/..` is
/// nothing even where `a` is a link. runc does the same, so that both find the same state directory.
pub fn clean(directory: &Path, path: &Path) -> PathBuf {
    let mut clean = PathBuf::from("/");
    for component in directory.join(path).components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::ParentDir => {
                clean.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::clean;

    #[test]
    fn cleans() {
        for (path, expected) in [
            ("", "/w/d"),
            (".", "/w/d"),
            ("a/./b//c/", "/w/d/a/b/c"),
            ("../x", "/w/x"),
            ("../../../..", "/"),
            ("/", "/"),
            ("//", "/"),
            ("/a/../b", "/b"),
        ] {
            assert_eq!(clean(Path::new("/w/d"), Path::new(path)), Path::new(expected), "{path}");
        }
    }
}
