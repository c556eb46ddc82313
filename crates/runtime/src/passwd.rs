//! `/etc/passwd` of the container and of the host, passwd(5).

use std::path::Path;

use rustix::fs::{FileType, OFlags};

use crate::rootfs::RootDir;

/// Larger files are not read: they are no user list.
const LARGEST: u64 = 16 << 20;

/// The home directory of a user, from the container's user list; `None` when it is not in it.
pub fn home_of(root: &RootDir, uid: u32) -> Option<String> {
    // An image may hold a fifo or a device under this name: not blocking, and looked at before it is read.
    let file =
        root.open(Path::new("/etc/passwd"), OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY).ok()?;
    let stat = rustix::fs::fstat(&file).ok()?;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if !is_file || u64::try_from(stat.st_size).ok()? > LARGEST {
        return None;
    }
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut std::fs::File::from(file), &mut bytes).ok()?;
    home(&bytes, uid)
}

/// The home directory of a user in a user list: of the first line with that id and all fields.
pub fn home(passwd: &[u8], uid: u32) -> Option<String> {
    entries(passwd).find(|e| e.uid == uid && !e.home.is_empty()).map(|e| e.home)
}

/// The name of a user in a user list.
pub fn name(passwd: &[u8], uid: u32) -> Option<String> {
    entries(passwd).find(|e| e.uid == uid).map(|e| e.name)
}

struct Entry {
    name: String,
    uid: u32,
    home: String,
}

fn entries(passwd: &[u8]) -> impl Iterator<Item = Entry> {
    passwd.split(|b| *b == b'\n').filter_map(|line| {
        let line = std::str::from_utf8(line).ok()?;
        let mut fields = line.split(':');
        let name = fields.next()?;
        let uid = fields.nth(1)?.trim().parse().ok()?;
        let home = fields.nth(2)?;
        Some(Entry { name: name.to_owned(), uid, home: home.to_owned() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &[u8] =
        b"root:x:0:0:root:/root:/bin/sh\n# comment\nbroken:x:1000\nc:x:1000:1000::/home/c:/bin/sh\n\
        d:x:1001:1:\xff:/home/bad:\nc2:x:1000:1000::/home/c2:\nnohome:x:5:5:::\n";

    #[test]
    fn the_first_whole_line_counts() {
        assert_eq!(home(LIST, 0).as_deref(), Some("/root"));
        assert_eq!(home(LIST, 1000).as_deref(), Some("/home/c"));
        assert_eq!(home(LIST, 1001), None);
        assert_eq!(home(LIST, 5), None);
        assert_eq!(name(LIST, 1000).as_deref(), Some("c"));
        assert_eq!(name(LIST, 42), None);
    }
}
