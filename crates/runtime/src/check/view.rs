//! The files of a container that is not there: its root file system with the bind mounts of its configuration on it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat, openat2};
use rustix::io::Errno;

use brig_plan::{Mount, MountKind};

/// Links that are followed before it is called a loop, as in the kernel.
const MAX_LINKS: usize = 40;

/// What a path leads to.
#[derive(Debug)]
pub enum Found {
    /// A file of the host.
    File {
        /// Open, though only as a place.
        fd: OwnedFd,
        /// What it is.
        stat: Stat,
        /// A link was followed on the way.
        followed: bool,
    },
    /// Nothing.
    Missing(Errno),
    /// It lies in a file system that is not mounted yet, so nobody knows.
    Unknown,
}

/// See the module.
#[derive(Debug)]
pub struct View<'a> {
    root: Option<OwnedFd>,
    mounts: &'a [Mount],
}

impl<'a> View<'a> {
    /// The view with these mounts; without a root, all that is not in one of them is unknown.
    pub fn new(root: Option<OwnedFd>, mounts: &'a [Mount]) -> Self {
        Self { root, mounts }
    }

    /// The same with the first `count` mounts only.
    pub fn find_below(&self, path: &Path, count: usize) -> Found {
        self.walk(path, self.mounts.get(..count).unwrap_or(self.mounts))
    }

    /// Looks a path up in the finished container.
    pub fn find(&self, path: &Path) -> Found {
        self.walk(path, self.mounts)
    }

    fn walk(&self, path: &Path, mounts: &[Mount]) -> Found {
        let mut left: VecDeque<OsString> = words(path);
        let mut at = PathBuf::from("/");
        let (mut links, mut last) = (0, None);
        while let Some(word) = left.pop_front() {
            if word == ".." {
                at.pop();
                last = None;
                continue;
            }
            let next = at.join(&word);
            let (fd, stat) = match self.look(&next, mounts) {
                Ok(Some(found)) => found,
                // A mount in an unknown place is where its path leads, whatever is on the way there.
                Ok(None) if left.iter().all(|w| w != "..") && leads_to_mount(&next, mounts) => {
                    at = next;
                    last = None;
                    continue;
                }
                Ok(None) => return Found::Unknown,
                // It is made for what is mounted in it.
                Err(Errno::NOENT) if leads_to_mount(&next, mounts) => {
                    at = next;
                    last = None;
                    continue;
                }
                Err(errno) => return Found::Missing(errno),
            };
            if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
                at = next;
                last = Some((fd, stat));
                continue;
            }
            links += 1;
            if links > MAX_LINKS {
                return Found::Missing(Errno::LOOP);
            }
            let Ok(target) = rustix::fs::readlinkat(&fd, c"", Vec::new()) else {
                return Found::Unknown;
            };
            let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
            if target.is_absolute() {
                at = PathBuf::from("/");
            }
            last = None;
            let mut ahead = words(&target);
            ahead.append(&mut left);
            left = ahead;
        }
        let found = match last {
            Some(found) => Ok(Some(found)),
            None => self.look(&at, mounts),
        };
        match found {
            Ok(Some((fd, stat))) => Found::File { fd, stat, followed: links > 0 },
            Ok(None) => Found::Unknown,
            Err(errno) => Found::Missing(errno),
        }
    }

    /// A place without links on the way; `None` where that cannot be known.
    fn look(&self, at: &Path, mounts: &[Mount]) -> Result<Option<(OwnedFd, Stat)>, Errno> {
        let above = mounts.iter().rfind(|mount| {
            // A mount over the root is refused, so it hides nothing.
            at.starts_with(&mount.target) && mount.target != Path::new("/")
        });
        let fd = match above.map(|mount| (&mount.kind, &mount.target)) {
            None => match &self.root {
                Some(root) => within(root, at.strip_prefix("/").unwrap_or(at))?,
                None => return Ok(None),
            },
            Some((MountKind::Bind { source, .. }, target)) => {
                // Its absence is another complaint.
                let Ok(source) = open_place(source) else { return Ok(None) };
                within(&source, at.strip_prefix(target).unwrap_or(at))?
            }
            Some(_) => return Ok(None),
        };
        let stat = rustix::fs::fstat(&fd)?;
        Ok(Some((fd, stat)))
    }
}

/// Whether a place is there at the latest when what lies in it is mounted.
fn leads_to_mount(at: &Path, mounts: &[Mount]) -> bool {
    mounts.iter().any(|mount| mount.target != at && mount.target.starts_with(at))
}

fn words(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            _ => None,
        })
        .collect()
}

/// Opens what lies at `path` below `base`, which the caller has freed of links: if it is otherwise by now, it is not
/// followed anywhere.
fn within(base: &OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match openat2(base, path, flags, Mode::empty(), resolve) {
        // The base is a file, a bind mount of one.
        Err(Errno::NOTDIR) if path == Path::new(".") => rustix::io::fcntl_dupfd_cloexec(base, 3),
        // The last component is a link, which is what is asked for.
        Err(Errno::LOOP) => openat2(base, path, flags, Mode::empty(), ResolveFlags::BENEATH),
        other => other,
    }
}

/// Opens a path of the host as a place.
pub fn open_place(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

/// The beginning of a regular file; empty for anything else.
pub fn head(fd: impl AsFd, most: usize) -> Vec<u8> {
    let fd = fd.as_fd();
    let regular = rustix::fs::fstat(fd)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    let mut bytes = Vec::new();
    if regular
        && let Ok(file) = std::fs::File::open(format!("/proc/self/fd/{}", fd.as_raw_fd()))
        && let Ok(most) = u64::try_from(most)
    {
        let _ = file.take(most).read_to_end(&mut bytes);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn bind(target: &str, source: &Path) -> Mount {
        Mount {
            index: 0,
            target: target.into(),
            kind: MountKind::Bind { source: source.to_owned(), recursive: true },
            exact: false,
            attrs: brig_plan::MountAttrs::default(),
            recursive_attrs: brig_plan::MountAttrs::default(),
            propagation: Vec::new(),
            idmap: None,
        }
    }

    fn size(found: Found) -> Option<i64> {
        match found {
            Found::File { stat, .. } => Some(stat.st_size),
            _ => None,
        }
    }

    #[test]
    fn links_stay_within_the_container_and_cross_mounts() {
        let dir = tempfile::tempdir().unwrap();
        let (root, volume) = (dir.path().join("root"), dir.path().join("volume"));
        for path in [root.join("bin"), root.join("data"), volume.join("sub")] {
            std::fs::DirBuilder::new().recursive(true).create(path).unwrap();
        }
        let file = |path: PathBuf, length| {
            std::fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(path)
                .and_then(|f| f.set_len(length))
                .unwrap()
        };
        file(root.join("bin/sh"), 1);
        file(volume.join("sub/tool"), 2);
        symlink("/bin/sh", root.join("absolute")).unwrap();
        symlink("../../../../bin/sh", root.join("data/up")).unwrap();
        symlink("/data/sub/tool", root.join("bin/tool")).unwrap();
        symlink("round", root.join("round")).unwrap();
        let mut mounts = vec![bind("/data", &volume)];
        let proc = Mount {
            target: "/proc".into(),
            kind: MountKind::Proc(Default::default()),
            ..bind("/proc", &volume)
        };
        mounts.push(proc);
        let view = View::new(Some(open_place(&root).unwrap()), &mounts);
        assert_eq!(size(view.find(Path::new("/absolute"))), Some(1));
        assert_eq!(size(view.find_below(Path::new("/data/up"), 0)), Some(1));
        assert!(matches!(view.find(Path::new("/data/up")), Found::Missing(Errno::NOENT)));
        assert_eq!(size(view.find(Path::new("/bin/tool"))), Some(2));
        assert!(matches!(view.find(Path::new("/round")), Found::Missing(Errno::LOOP)));
        assert!(matches!(view.find(Path::new("/proc/self/exe")), Found::Unknown));
        let deep = [bind("/no/such/dir", &volume)];
        let view_of_deep = View::new(Some(open_place(&root).unwrap()), &deep);
        assert_eq!(size(view_of_deep.find(Path::new("/no/such/dir/sub/tool"))), Some(2));
        assert!(matches!(view_of_deep.find(Path::new("/no/other")), Found::Missing(Errno::NOENT)));
        assert!(matches!(view.find(Path::new("/bin/sh/x")), Found::Missing(Errno::NOTDIR)));
        assert!(matches!(view.find(Path::new("/")), Found::File { followed: false, .. }));
        let none = View::new(None, &mounts);
        assert!(matches!(none.find(Path::new("/bin/sh")), Found::Unknown));
        assert_eq!(size(none.find(Path::new("/data/sub/tool"))), Some(2));
    }

    #[test]
    fn a_bound_file_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hosts");
        std::io::Write::write_all(
            &mut std::fs::OpenOptions::new().write(true).create_new(true).open(&path).unwrap(),
            b"#!x",
        )
        .unwrap();
        let mounts = [bind("/etc/hosts", &path)];
        let view = View::new(None, &mounts);
        let Found::File { fd, .. } = view.find(Path::new("/etc/hosts")) else { panic!("not found") };
        assert_eq!(head(&fd, 2), b"#!");
        assert_eq!(head(open_place(dir.path()).unwrap(), 2), b"");
    }
}
