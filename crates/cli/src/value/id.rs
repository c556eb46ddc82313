//! Names of containers and of processes in them.

use std::ffi::OsStr;

use brig_runtime::ContainerId;

use crate::error::Error;

/// The container that a word names.
///
/// # Errors
///
/// `container id cannot be empty` or `invalid container ID format`.
pub fn container_id(text: &OsStr) -> Result<ContainerId, Error> {
    // What is no text has characters that no id has.
    Ok(ContainerId::parse(&text.to_string_lossy())?)
}

/// The name of a process that exec started (`--exec-id`), with the rules of container ids.
///
/// # Errors
///
/// `exec id cannot be empty` or `invalid exec ID format`.
pub fn exec_id(text: &OsStr) -> Result<String, Error> {
    if text.is_empty() {
        return Err(Error::caller("exec id cannot be empty"));
    }
    well_formed(text).map(str::to_owned).ok_or_else(|| Error::caller("invalid exec ID format"))
}

fn well_formed(text: &OsStr) -> Option<&str> {
    let text = text.to_str()?;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_+-.".contains(&byte);
    (text.bytes().all(allowed) && text != "." && text != "..").then_some(text)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::{container_id, exec_id};

    #[test]
    fn names() {
        let long = "a".repeat(255);
        for text in ["a", "9", "A_b+c-d.e", "...", "-x", long.as_str()] {
            assert_eq!(container_id(OsStr::new(text)).unwrap().as_str(), text);
        }
        let empty = container_id(OsStr::new("")).unwrap_err();
        assert_eq!(empty.message, "container id cannot be empty");
        for text in [".", "..", "../x", "a/b", "a b", "a:b", "é", "a\n", "@"] {
            let error = container_id(OsStr::new(text)).unwrap_err();
            assert_eq!(error.message, "invalid container ID format", "{text}");
        }
        assert!(container_id(OsStr::from_bytes(b"a\xff")).is_err());
        assert!(exec_id(OsStr::new("..")).is_err());
    }
}
