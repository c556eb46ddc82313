//! `/proc/PID/mountinfo`, proc_pid_mountinfo(5). Read only where a kernel interface leaves no other way.

use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mount<'a> {
    /// What of the file system is mounted.
    pub root: &'a str,
    /// Where, with blanks and backslashes as octal escapes.
    point: &'a str,
    /// It passes mounts on to others.
    pub shared: bool,
    /// Type.
    pub fstype: &'a str,
}

impl Mount<'_> {
    /// Whether the whole file system is mounted, not a part of it.
    pub fn is_whole(&self) -> bool {
        self.root == "/"
    }

    /// Where.
    pub fn mount_point(&self) -> PathBuf {
        PathBuf::from(std::ffi::OsString::from_vec(unescape(self.point.as_bytes())))
    }
}

/// All mounts; lines that make no sense are passed over.
pub fn parse(text: &str) -> impl Iterator<Item = Mount<'_>> {
    text.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        // Optional fields, after the options, end with a hyphen.
        let mut shared = false;
        for field in fields.by_ref().skip(1).take_while(|f| *f != "-") {
            shared |= field.starts_with("shared:");
        }
        let fstype = fields.next()?;
        Some(Mount { root, point, shared, fstype })
    })
}

/// Undoes `\ooo`.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, tail)) = rest.split_first() {
        let octal = tail
            .get(..3)
            .and_then(|o| std::str::from_utf8(o).ok())
            .and_then(|o| u8::from_str_radix(o, 8).ok());
        match (first, octal) {
            (b'\\', Some(byte)) => {
                out.push(byte);
                rest = tail.get(3..).unwrap_or_default();
            }
            _ => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_around_the_optional_ones() {
        let text = "22 28 0:20 / /sys rw,nosuid shared:7 master:1 - sysfs sysfs rw\n\
                    23 28 0:21 /sub /a\\040b\\134 rw - proc proc rw\nnonsense\n";
        let mounts: Vec<_> = parse(text).collect();
        assert_eq!(mounts.len(), 2);
        assert!(mounts[0].is_whole() && mounts[0].fstype == "sysfs");
        assert_eq!(mounts[1].mount_point(), PathBuf::from("/a b\\"));
        assert!(!mounts[1].is_whole());
    }
}
