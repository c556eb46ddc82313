//! The kernel's own resolution is the oracle.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use rustix::fs::{RenameFlags, openat2, renameat_with};

use super::*;

fn dir(path: &Path) -> OwnedFd {
    rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap()
}

/// What there is in the root: directories, files, and links between them and out of it.
#[derive(Debug, Clone)]
enum Entry {
    Dir,
    File,
    Link(String),
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "d"]).prop_map(str::to_owned)
}

fn path() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        6 => name(),
        1 => Just("..".to_owned()),
        1 => Just(".".to_owned()),
        1 => Just(String::new()),
    ];
    (any::<bool>(), prop::collection::vec(part, 1..6))
        .prop_map(|(absolute, parts)| format!("{}{}", if absolute { "/" } else { "" }, parts.join("/")))
        .prop_filter("a link has to lead somewhere", |path| !path.is_empty())
}

fn entry() -> impl Strategy<Value = Entry> {
    prop_oneof![3 => Just(Entry::Dir), 1 => Just(Entry::File), 3 => path().prop_map(Entry::Link)]
}

fn entries() -> impl Strategy<Value = Vec<(Vec<String>, Entry)>> {
    prop::collection::vec((prop::collection::vec(name(), 1..4), entry()), 0..14)
}

fn make(root: &Path, entries: &[(Vec<String>, Entry)]) {
    for (at, entry) in entries {
        let mut path = root.to_owned();
        // Only plain directories are made in, so that nothing is made elsewhere.
        for (index, name) in at.iter().enumerate() {
            path.push(name);
            if index + 1 < at.len() && !fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) {
                let _ = fs::create_dir(&path);
            }
        }
        if path.parent().and_then(|parent| parent.canonicalize().ok()).as_deref() != path.parent() {
            continue;
        }
        let _ = match entry {
            Entry::Dir => fs::create_dir(&path),
            Entry::File => fs::write(&path, "file"),
            Entry::Link(target) => symlink(target, &path),
        };
    }
}

fn same(fd: Result<OwnedFd, Errno>) -> Result<(u64, u64), Errno> {
    fd.map(|fd| rustix::fs::fstat(fd).map(|stat| (stat.st_dev, stat.st_ino)).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn it_finds_what_the_kernel_finds(
        entries in entries(),
        paths in prop::collection::vec(path(), 1..12),
        plain in any::<bool>(),
    ) {
        let top = tempfile::tempdir().unwrap();
        // There is something above the root, with the same names, that must not be found.
        let root = top.path().canonicalize().unwrap().join("a");
        fs::create_dir(&root).unwrap();
        fs::create_dir(top.path().join("b")).unwrap();
        make(&root, &entries);
        let fd = dir(&root);
        let resolve = if plain { ResolveFlags::NO_SYMLINKS } else { ResolveFlags::empty() };
        for path in &paths {
            for flags in [
                OFlags::PATH,
                OFlags::PATH | OFlags::NOFOLLOW,
                OFlags::PATH | OFlags::DIRECTORY,
                OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW,
                OFlags::RDONLY,
                OFlags::RDONLY | OFlags::NOFOLLOW,
                OFlags::RDONLY | OFlags::DIRECTORY,
                OFlags::WRONLY,
            ] {
                let flags = flags | OFlags::CLOEXEC;
                let kernels = resolve | ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
                // EAGAIN: a rename anywhere on this machine, while it goes up.
                let expected = loop {
                    match openat2(&fd, path.as_str(), flags, Mode::empty(), kernels) {
                        Err(Errno::AGAIN) => {}
                        other => break other,
                    }
                };
                let found = open(fd.as_fd(), Path::new(path), flags, resolve);
                prop_assert_eq!(same(found), same(expected), "{} {:?}", path, flags);
            }
        }
    }
}

#[test]
fn the_kernels_own_links_are_not_followed() {
    let root = dir(Path::new("/"));
    let on = |path: &str| open(root.as_fd(), Path::new(path), OFlags::PATH, ResolveFlags::empty());
    for path in
        ["/proc/self/root", "/proc/self/root/etc", "/proc/self/cwd", "/proc/self/exe", "/proc/self/ns/mnt"]
    {
        assert_eq!(on(path).unwrap_err(), Errno::LOOP, "{path}");
    }
    let stat = on("/proc/self/stat").unwrap();
    assert!(is_procfs(stat.as_fd()).unwrap());
    on("/proc/mounts").unwrap();
}

#[test]
fn limits_are_the_kernels() {
    let top = tempfile::tempdir().unwrap();
    let root = dir(top.path());
    fs::write(top.path().join("l0"), "").unwrap();
    for n in 1..=41 {
        symlink(format!("l{}", n - 1), top.path().join(format!("l{n}"))).unwrap();
    }
    let on = |path: &str| open(root.as_fd(), Path::new(path), OFlags::PATH, ResolveFlags::empty());
    assert!(on("l40").is_ok());
    assert_eq!(on("l41").unwrap_err(), Errno::LOOP);
    symlink("loop", top.path().join("loop")).unwrap();
    assert_eq!(on("loop").unwrap_err(), Errno::LOOP);
    assert_eq!(on("").unwrap_err(), Errno::NOENT);
    assert_eq!(on(&"x".repeat(256)).unwrap_err(), Errno::NAMETOOLONG);
    assert_eq!(on(&"./".repeat(2048)).unwrap_err(), Errno::NAMETOOLONG);
    assert!(on(&"/../".repeat(1000)).is_ok());
}

/// A directory that is exchanged with a link, and one that is moved up while it is walked through, lead nowhere else.
#[test]
fn names_that_change_meanwhile() {
    let top = tempfile::tempdir().unwrap();
    let path = |name: &str| top.path().join(name);
    for made in ["root/d/x/y/z", "root/up", "outside/x/y/z"] {
        fs::create_dir_all(path(made)).unwrap();
    }
    fs::write(path("outside/file"), "").unwrap();
    fs::write(path("outside/x/y/file"), "").unwrap();
    symlink(path("outside"), path("root/l")).unwrap();
    symlink("../../outside", path("root/m")).unwrap();
    let root = dir(&path("root"));
    let stop = Arc::new(AtomicBool::new(false));
    // By descriptors: what changes names is in the container, and must not itself go by a link.
    let exchange = |one: (&OwnedFd, &'static str), other: (&OwnedFd, &'static str)| {
        let stop = Arc::clone(&stop);
        let dirs = (one.0.try_clone().unwrap(), other.0.try_clone().unwrap());
        let names = (one.1, other.1);
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let _ = renameat_with(&dirs.0, names.0, &dirs.1, names.1, RenameFlags::EXCHANGE);
            }
        })
    };
    let (d, x) = (dir(&path("root/d")), dir(&path("root/d/x")));
    let threads = [
        exchange((&root, "d"), (&root, "l")),
        exchange((&d, "x"), (&root, "m")),
        exchange((&x, "y"), (&root, "up")),
    ];
    let mut found = 0;
    for _ in 0..3000 {
        for wanted in ["/d/file", "/d/x/y/file", "/d/x/y/../../../outside/file", "/d/x/../../../outside/file"]
        {
            let outside = open(root.as_fd(), Path::new(wanted), OFlags::PATH, ResolveFlags::empty());
            assert!(outside.is_err(), "{wanted}");
        }
        found +=
            usize::from(open(root.as_fd(), Path::new("/d/x/y"), OFlags::PATH, ResolveFlags::empty()).is_ok());
    }
    stop.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(found > 0, "nothing was ever found");
}

#[test]
fn files_of_procfs_and_nothing_that_covers_them() {
    let proc = dir(Path::new("/proc"));
    let on = |path: &str| open_in_proc(proc.as_fd(), Path::new(path), OFlags::RDONLY);
    let file = on("sys/kernel/ostype").unwrap();
    let mut text = [0; 16];
    let n = rustix::io::read(&file, &mut text).unwrap();
    assert_eq!(&text[..n], b"Linux\n");
    assert_eq!(on("self/stat").unwrap_err(), Errno::LOOP);
    assert_eq!(on("sys/../version").unwrap_err(), Errno::LOOP);
    assert_eq!(on("no/such").unwrap_err(), Errno::NOENT);
    assert_eq!(on("").unwrap_err(), Errno::NOENT);
    // binfmt_misc is another file system, where it is mounted.
    if fs::read_to_string("/proc/self/mountinfo").unwrap().contains(" /proc/sys/fs/binfmt_misc ") {
        assert_eq!(on("sys/fs/binfmt_misc/status").unwrap_err(), Errno::XDEV);
    }
}
