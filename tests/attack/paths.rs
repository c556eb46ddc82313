//! Names in the root file system that change while the container is made: CVE-2021-30465, CVE-2024-45310, CVE-2025-31133,
//! CVE-2025-52565, CVE-2025-52881, CVE-2019-19921 and their kin. An attacker swaps a directory with a link all the time.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use brig_tests::{Bundle, Run, Socket, host, json, note, runtime};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::support::{Attacker, SECRET, Victim, must_break, naive, rounds};

/// Places in the container that are mounted on, made or hidden in one creation: as many races at once.
const PLACES: usize = 40;

/// `/d` of the container and a link to the victim, swapped for as long as the result lives.
fn swapped(b: &Bundle, victim: &Victim) -> Attacker {
    let (dir, link) = (b.rootfs().join("d"), b.rootfs().join("l"));
    fs::create_dir_all(&dir).unwrap();
    symlink(victim.path(), &link).unwrap();
    Attacker::swapping(dir, link)
}

fn root_of(b: &Bundle) -> String {
    b.rootfs().to_string_lossy().into_owned()
}

/// Creates and deletes the container; whether it could be created.
fn made(b: &Bundle) -> bool {
    let made = b.brig("create").arg(&b.id).detached().run().code() == 0;
    b.delete();
    made
}

fn race(b: &Bundle, victim: &Victim, attacker: &Attacker, rounds: usize) {
    let mut made_it = 0;
    for _ in 0..rounds {
        made_it += usize::from(made(b));
        victim.assert_untouched();
    }
    assert!(attacker.count() > 100, "the attacker got no turn");
    note(&format!("{rounds} creations, {made_it} of them succeeded, {} swaps", attacker.count()));
}

#[test]
fn mount_targets() {
    let victim = Victim::new();
    let mut b = Bundle::sleeping();
    let source = b.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("file"), "bound").unwrap();
    for i in 0..PLACES / 2 {
        let (dir, file) = (format!("/d/b{i}"), format!("/d/f{i}"));
        b.mount(json!({ "destination": dir, "type": "bind", "source": source, "options": ["bind", "ro"] }));
        b.mount(json!({ "destination": file, "type": "bind", "source": source.join("file"), "options": ["bind"] }));
        b.mount(json!({ "destination": format!("/d/t{i}/deep/er"), "type": "tmpfs", "source": "tmpfs", "options": ["size=4k"] }));
    }
    b.mount(json!({ "destination": "/d/c", "type": "tmpfs", "source": "tmpfs", "options": ["tmpcopyup"] }));
    let attacker = swapped(&b, &victim);
    must_break("mount targets made by path", || {
        naive().args(["mkdir", &root_of(&b), "/d"]).run();
        !victim.is_untouched()
    });
    drop(attacker);
    victim.restore();
    for name in ["d", "l"] {
        let path = b.rootfs().join(name);
        let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
    }
    let attacker = swapped(&b, &victim);
    race(&b, &victim, &attacker, rounds(20, 700));
    // Where the kernel does not resolve paths, they are walked name by name.
    let total = rounds(10, 300);
    let (mut made_it, calls) = (0, "openat2,faccessat2");
    for _ in 0..total {
        let create = Run::new(env!("CARGO_BIN_EXE_brig-test-helper")).args(["without", "38", calls]);
        let create = create.arg(runtime()).arg("--root").arg(&b.root).args(["create", "--bundle"]);
        made_it += usize::from(create.arg(b.path()).arg(&b.id).detached().run().code() == 0);
        b.delete();
        victim.assert_untouched();
    }
    note(&format!("without {calls}: {total} creations, {made_it} of them succeeded"));
}

#[test]
fn device_nodes_and_the_working_directory() {
    let victim = Victim::new();
    let mut b = Bundle::sleeping();
    let nodes = (0..PLACES).map(
        |i| json!({ "path": format!("/d/n{i}"), "type": "c", "major": 1, "minor": 3, "fileMode": 438, "uid": 7, "gid": 7 }),
    );
    b.config["linux"]["devices"] = nodes.collect();
    b.config["process"]["cwd"] = json!("/d/made/by/the/runtime");
    let attacker = swapped(&b, &victim);
    must_break("nodes made by path", || {
        naive().args(["file", &root_of(&b), "/d"]).run();
        !victim.is_untouched()
    });
    drop(attacker);
    victim.restore();
    for name in ["d", "l"] {
        let path = b.rootfs().join(name);
        let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
    }
    let attacker = swapped(&b, &victim);
    race(&b, &victim, &attacker, rounds(30, 20_000));
}

/// What the kernel knows of the mounts in a container: the full procfs, and how many mounts lie in each.
fn procfs_and_what_covers_it(mountinfo: &str) -> Vec<(String, usize)> {
    let field = |line: &str, n: usize| line.split(' ').nth(n).unwrap_or_default().to_owned();
    let lines: Vec<&str> = mountinfo.lines().collect();
    let whole = lines.iter().filter(|line| line.contains(" - proc ") && field(line, 3) == "/");
    whole
        .map(|line| {
            let id = field(line, 0);
            let inside = lines.iter().filter(|other| field(other, 1) == id).count();
            (field(line, 4), inside)
        })
        .collect()
}

/// `/proc` is renamed between its mounting and its masking: what is masked then is a directory of the attacker.
#[test]
fn masked_paths_in_a_proc_that_moves() {
    let b = {
        let mut b = Bundle::sleeping();
        b.config["linux"]["maskedPaths"] = json!(["/proc/keys", "/proc/cpuinfo"]);
        b.config["linux"]["readonlyPaths"] = json!(["/proc/sys"]);
        b
    };
    let fake = b.rootfs().join("fake");
    fs::create_dir_all(fake.join("sys")).unwrap();
    for file in ["keys", "cpuinfo"] {
        fs::write(fake.join(file), "").unwrap();
    }
    let covers = 3;
    let attacker = Attacker::swapping(b.rootfs().join("proc"), fake);
    let root = b.rootfs();
    must_break("procfs masked by path", || {
        let shown = naive().args(["mask", &root_of(&b)]).run().out;
        procfs_and_what_covers_it(&shown)
            .iter()
            .any(|(point, inside)| std::path::Path::new(point).starts_with(&root) && *inside < covers)
    });
    let (total, mut seen) = (rounds(60, 20_000), 0);
    for _ in 0..total {
        if b.brig("create").arg(&b.id).detached().run().code() == 0 {
            let table = fs::read_to_string(format!("/proc/{}/mountinfo", b.pid())).unwrap();
            for (point, inside) in procfs_and_what_covers_it(&table) {
                assert!(
                    inside >= covers,
                    "procfs at {point} is masked in {inside} of {covers} places:\n{table}"
                );
                seen += 1;
            }
        }
        b.delete();
    }
    assert!(seen > 0, "no container was made");
    note(&format!("{total} creations, {seen} of them succeeded, {} swaps", attacker.count()));
}

/// Sysctls go to the kernel or nowhere, whatever `/proc` of the image is at the time.
#[test]
fn sysctls_and_a_proc_that_moves() {
    const FILE: &str = "sys/net/ipv4/ip_unprivileged_port_start";
    let mut b = Bundle::sleeping();
    b.config["linux"]["sysctl"] = json!({ "net.ipv4.ip_unprivileged_port_start": "77" });
    let fake = b.rootfs().join("fake").join(FILE);
    fs::create_dir_all(fake.parent().unwrap()).unwrap();
    fs::write(&fake, "1024").unwrap();
    let written = || {
        let either = [b.rootfs().join("fake").join(FILE), b.rootfs().join("proc").join(FILE)];
        either.iter().find_map(|path| fs::read_to_string(path).ok()).is_some_and(|text| text != "1024")
    };
    let attacker = Attacker::swapping(b.rootfs().join("proc"), b.rootfs().join("fake"));
    must_break("a sysctl written by path", || {
        naive().args(["write", &root_of(&b), &format!("/proc/{FILE}"), "77"]).run();
        (0..100).any(|_| written())
    });
    for either in ["fake", "proc"] {
        let _ = fs::write(b.rootfs().join(either).join(FILE), "1024");
    }
    assert!(!written());
    for _ in 0..rounds(40, 20_000) {
        made(&b);
        assert!(!written(), "a file of the image was written");
    }
    assert!(attacker.count() > 100);
}

/// CVE-2025-52565.
#[test]
fn the_console() {
    let victim = Victim::new();
    let mut b = Bundle::sleeping();
    b.config["process"]["terminal"] = true.into();
    b.config["mounts"].as_array_mut().unwrap().retain(|m| m["destination"] != "/dev");
    let (console, link) = (b.rootfs().join("dev/console"), b.rootfs().join("dev/link"));
    fs::write(&console, "").unwrap();
    symlink(victim.file(), &link).unwrap();
    let socket = Socket::new(b.path().join("console.sock"));
    let attacker = Attacker::swapping(console, link);
    must_break("a console made by path", || {
        naive().args(["write", &root_of(&b), "/dev/console", "overwritten"]).run();
        !victim.is_untouched()
    });
    victim.restore();
    let mut made_it = 0;
    let total = rounds(40, 20_000);
    for _ in 0..total {
        let create = b.brig("create").arg("--console-socket").arg(&socket.path).arg(&b.id);
        if create.detached().run().code() == 0 {
            made_it += 1;
            drop(socket.receive());
        } else if socket.has_connection() {
            socket.accept();
        }
        b.delete();
        victim.assert_untouched();
    }
    note(&format!("{total} creations, {made_it} of them succeeded, {} swaps", attacker.count()));
}

/// Whoever can write to the directory of a pid file cannot have another file written.
#[test]
fn the_pid_file() {
    let victim = Victim::new();
    let b = Bundle::sleeping();
    let dir = b.path().join("pids");
    fs::create_dir(&dir).unwrap();
    let (pid_file, target) = (dir.join("pid"), victim.file());
    let planted = pid_file.clone();
    let attacker = Attacker::new(move || {
        let spare = planted.with_file_name("link");
        let _ = symlink(&target, &spare);
        let _ = fs::rename(&spare, &planted);
        // What the runtime may use on its way there.
        let _ = symlink(&target, planted.with_file_name(".pid"));
    });
    must_break("a pid file written by path", || {
        naive().args(["write", "/", &pid_file.to_string_lossy(), "1"]).run();
        !victim.is_untouched()
    });
    victim.restore();
    for _ in 0..rounds(40, 20_000) {
        b.brig("create").arg("--pid-file").arg(&pid_file).arg(&b.id).detached().ok();
        b.delete();
        victim.assert_untouched();
    }
    assert!(attacker.count() > 100);
}

/// The directory above the root file system is somebody else's, who puts a link to the host in its place.
#[test]
fn the_root_file_system_itself() {
    let victim = Victim::new();
    let b = Bundle::sleeping();
    // It looks like a root file system: whatever is made in it is seen.
    let link = b.path().join("link");
    symlink(victim.path(), &link).unwrap();
    let attacker = Attacker::swapping(b.rootfs(), link);
    must_break("a root file system by path", || {
        naive().args(["mkdir", &root_of(&b), "/"]).run();
        !victim.is_untouched()
    });
    victim.restore();
    race(&b, &victim, &attacker, rounds(60, 20_000));
}

/// A device of the image may be the same inode as one of the host's.
#[test]
fn hard_linked_devices() {
    let mut b = Bundle::default();
    b.config["mounts"].as_array_mut().unwrap().retain(|m| m["destination"] != "/dev");
    let hosts = b.path().join("hosts-null");
    let (null, full) = (rustix::fs::makedev(1, 3), rustix::fs::makedev(1, 7));
    let images = b.rootfs().join("dev/null");
    let again = |device| {
        let _ = fs::remove_file(&hosts);
        let _ = fs::remove_file(&images);
        mknodat(CWD, &hosts, FileType::CharacterDevice, Mode::from_raw_mode(0o600), device).unwrap();
        fs::hard_link(&hosts, &images).unwrap();
    };
    let look = || fs::metadata(&hosts).map(|s| (s.permissions().mode() & 0o7777, s.uid(), s.gid())).unwrap();
    again(null);
    naive().args(["chmod", &root_of(&b), "/dev/null"]).ok();
    assert_eq!(look().0, 0o666, "the naive variant changes the host's device");
    for device in [null, full] {
        again(device);
        b.brig("create").arg(&b.id).detached().run();
        assert_eq!(look(), (0o600, 0, 0));
        b.delete();
    }
    b.config["linux"]["devices"] = json!([{ "path": "/dev/null", "type": "c", "major": 1, "minor": 3, "fileMode": 438, "uid": 9, "gid": 9 }]);
    again(null);
    b.brig("create").arg(&b.id).detached().run();
    assert_eq!(look(), (0o600, 0, 0));
}

/// Links in the lower layers of an overlay lead as little out of it as others.
#[test]
fn an_overlay_as_root_file_system() {
    let victim = Victim::new();
    let mut b = Bundle::new(&["ls", "-l", "/dev/"]);
    let dir = b.path().to_owned();
    let part = |name: &str| {
        let path = dir.join(name);
        fs::create_dir_all(&path).unwrap();
        path
    };
    let (upper, work, merged) = (part("upper"), part("work"), part("merged"));
    let _ = fs::remove_dir_all(b.rootfs().join("dev"));
    symlink(victim.path(), b.rootfs().join("dev")).unwrap();
    symlink("../../../../../../../..", b.rootfs().join("up")).unwrap();
    let options =
        format!("lowerdir={},upperdir={},workdir={}", b.rootfs().display(), upper.display(), work.display());
    let mounted = Run::new("mount").args(["-t", "overlay", "overlay", "-o", &options]).arg(&merged).run();
    if mounted.code() != 0 {
        return note(&format!("no overlay on this file system: {}", mounted.err.trim()));
    }
    naive().args(["mkdir", &merged.to_string_lossy(), "/dev"]).run();
    assert!(!victim.is_untouched(), "the naive variant follows the link");
    victim.restore();
    b.config["root"]["path"] = json!(merged);
    b.config["mounts"] = json!([
        { "destination": "/proc", "type": "proc", "source": "proc" },
        { "destination": format!("/up{}/made", victim.path().display()), "type": "tmpfs", "source": "tmpfs" },
    ]);
    b.config["linux"]["maskedPaths"] = json!([format!("/up{}", victim.file().display())]);
    let finished = b.run().run();
    victim.assert_untouched();
    Run::new("umount").arg(&merged).ok();
    assert_eq!(finished.code(), 0, "{finished}");
    assert!(upper.join(victim.path().strip_prefix("/").unwrap()).exists(), "resolved within the root");
}

/// Nothing is found, made or hidden outside by any way to write a path.
#[test]
fn ways_to_write_a_path() {
    let victim = Victim::new();
    let outside = victim.path().to_string_lossy().into_owned();
    let up = "../".repeat(20);
    let ways = [
        format!("/{up}{outside}/x"),
        format!("/proc/self/root{outside}/x"),
        format!("/proc/1/root{outside}/x"),
        format!("/proc/self/cwd/{up}{outside}/x"),
        "/proc/self/fd/3/x".to_owned(),
        format!("/relative/{up}{outside}/x"),
        format!("//{outside}//./x"),
    ];
    for way in &ways {
        let mut b = Bundle::default();
        b.mount(json!({ "destination": way, "type": "tmpfs", "source": "tmpfs" }));
        b.run().run();
        let mut b = Bundle::default();
        b.config["process"]["cwd"] = json!(way);
        b.run().run();
        let mut b = Bundle::default();
        b.config["linux"]["devices"] = json!([{ "path": way, "type": "c", "major": 1, "minor": 3 }]);
        b.run().run();
        let mut b = Bundle::default();
        for hidden in ["maskedPaths", "readonlyPaths"] {
            b.config["linux"][hidden] = json!([way, outside]);
        }
        b.run().run();
        victim.assert_untouched();
        assert!(host::mounts_below(victim.path()).is_empty());
    }
    // They do lead there on the host.
    let b = Bundle::default();
    naive().args(["write", &root_of(&b), &format!("/{up}{outside}/file"), "written"]).run();
    assert_ne!(fs::read_to_string(victim.file()).unwrap(), SECRET);
}

/// CVE-2026-88264 and -88265 of crun: without a mount on `/dev`, its names are the image's, also those for standard input and output.
#[test]
fn a_null_for_standard_input_that_is_a_link() {
    let victim = Victim::new();
    for kind in ["link", "file"] {
        let mut b = Bundle::new(&["true"]);
        b.config["mounts"].as_array_mut().unwrap().retain(|m| m["destination"] != "/dev");
        b.mount(
            json!({ "destination": "/host", "type": "bind", "source": victim.path(), "options": ["bind"] }),
        );
        b.config["linux"]["maskedPaths"] = json!([]);
        b.config["process"]["user"] = json!({ "uid": 1000, "gid": 1000 });
        let null = b.rootfs().join("dev/null");
        match kind {
            "link" => symlink("/host/file", &null).unwrap(),
            _ => fs::write(&null, "").unwrap(),
        }
        naive().args(["chmod", "/", &victim.file().to_string_lossy()]).ok();
        b.run().run();
        let owner = fs::metadata(victim.file()).unwrap();
        assert_eq!((owner.uid(), owner.gid()), (0, 0), "{kind}");
        victim.assert_untouched();
    }
}
