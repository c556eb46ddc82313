//! A root file system whose server lies: what a name is changes from one look to the next, with nobody else renaming anything.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use brig_fuzz::mutate::Random;
use brig_tests::{Bundle, host, json, note};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::support::{Victim, must_break, naive, rounds};

// linux/fuse.h.
const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const SETATTR: u32 = 4;
const READLINK: u32 = 5;
const MKNOD: u32 = 8;
const MKDIR: u32 = 9;
const STATFS: u32 = 17;
const RELEASE: u32 = 18;
const INIT: u32 = 26;
const OPENDIR: u32 = 27;
const READDIR: u32 = 28;
const RELEASEDIR: u32 = 29;
const BATCH_FORGET: u32 = 42;
const ENOENT: i32 = -2;
const ENOSYS: i32 = -38;

const DIRECTORY: u32 = 0o040_755;
const LINK: u32 = 0o120_777;

/// Directories that are there at each look, so that a container gets as far as the others.
const STEADY: [&str; 5] = ["proc", "sys", "dev", "bin", "etc"];

/// The file system, mounted until it is dropped.
struct Liar {
    dir: PathBuf,
}

impl Liar {
    /// Any other name below `dir` is now a directory, now a link to `target`, now missing. `None`: there is no FUSE here.
    fn mount(dir: &Path, target: &Path) -> Option<Self> {
        let device = OpenOptions::new().read(true).write(true).open("/dev/fuse").ok()?;
        fs::create_dir_all(dir).unwrap();
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0,allow_other\0", device.as_raw_fd());
        let options = std::ffi::CString::from_vec_with_nul(options.into_bytes()).unwrap();
        mount("brig-test", dir, "fuse.liar", MountFlags::empty(), options.as_c_str()).ok()?;
        let target = target.to_string_lossy().into_owned().into_bytes();
        std::thread::spawn(move || {
            Server { device, target, random: Random::new(1), kinds: vec![DIRECTORY; STEADY.len() + 2] }
                .serve()
        });
        Some(Self { dir: dir.to_owned() })
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        let _ = unmount(&self.dir, UnmountFlags::DETACH | UnmountFlags::FORCE);
    }
}

struct Server {
    device: File,
    target: Vec<u8>,
    random: Random,
    /// What each node is; its number is the index.
    kinds: Vec<u32>,
}

impl Server {
    fn serve(&mut self) {
        let mut request = vec![0; 1 << 20];
        loop {
            let n = match self.device.read(&mut request) {
                Ok(n) if n >= 40 => n,
                // ENOENT: the request was taken back. ENODEV: it is mounted no more.
                Err(e) if e.raw_os_error() == Some(2) || e.kind() == std::io::ErrorKind::Interrupted => {
                    continue;
                }
                _ => return,
            };
            let number = |at: usize| u32::from_ne_bytes(request[at..at + 4].try_into().unwrap());
            let node = u64::from_ne_bytes(request[16..24].try_into().unwrap());
            let operation = number(4);
            if matches!(operation, FORGET | BATCH_FORGET) {
                continue;
            }
            let (error, body) = match self.answer(operation, node, &request[40..n]) {
                Ok(body) => (0, body),
                Err(error) => (error, Vec::new()),
            };
            let length = u32::try_from(16 + body.len()).unwrap();
            let answer = [&length.to_ne_bytes()[..], &error.to_ne_bytes(), &request[8..16], &body].concat();
            let _ = self.device.write_all(&answer);
        }
    }

    fn answer(&mut self, operation: u32, node: u64, argument: &[u8]) -> Result<Vec<u8>, i32> {
        match operation {
            // Major and minor version, then what is left at zero, with room for a page in a write.
            INIT => Ok([
                &7_u32.to_ne_bytes()[..],
                &31_u32.to_ne_bytes(),
                &[0; 12],
                &4096_u32.to_ne_bytes(),
                &[0; 40],
            ]
            .concat()),
            LOOKUP => {
                let name = String::from_utf8_lossy(argument);
                if let Some(index) = STEADY.iter().position(|steady| *steady == name.trim_end_matches('\0')) {
                    return Ok(entry(u64::try_from(index + 2).unwrap(), DIRECTORY));
                }
                match self.random.below(8) {
                    0..6 => Ok(self.new_entry(DIRECTORY)),
                    6 => Ok(self.new_entry(LINK)),
                    _ => Err(ENOENT),
                }
            }
            MKDIR => Ok(self.new_entry(DIRECTORY)),
            MKNOD => Ok(self.new_entry(u32::from_ne_bytes(argument[..4].try_into().unwrap()))),
            GETATTR | SETATTR => {
                let kind =
                    usize::try_from(node).ok().and_then(|n| self.kinds.get(n)).copied().unwrap_or(DIRECTORY);
                Ok([&[0; 16][..], &attributes(node, kind)].concat())
            }
            READLINK => Ok(self.target.clone()),
            OPENDIR => Ok(vec![0; 16]),
            READDIR | RELEASE | RELEASEDIR => Ok(Vec::new()),
            STATFS => Ok(vec![0; 80]),
            _ => Err(ENOSYS),
        }
    }

    /// A node that has not been there before.
    fn new_entry(&mut self, kind: u32) -> Vec<u8> {
        let node = u64::try_from(self.kinds.len()).unwrap();
        self.kinds.push(kind);
        entry(node, kind)
    }
}

/// Nothing of it may be remembered.
fn entry(node: u64, kind: u32) -> Vec<u8> {
    [&node.to_ne_bytes()[..], &[0; 32], &attributes(node, kind)].concat()
}

fn attributes(node: u64, kind: u32) -> Vec<u8> {
    let mut attributes = vec![0; 88];
    attributes[..8].copy_from_slice(&node.to_ne_bytes());
    attributes[60..64].copy_from_slice(&kind.to_ne_bytes());
    attributes[64..68].copy_from_slice(&2_u32.to_ne_bytes());
    attributes
}

#[test]
fn a_root_file_system_that_lies() {
    let victim = Victim::new();
    let mut b = Bundle::sleeping();
    let dir = b.path().join("fuse");
    let Some(liar) = Liar::mount(&dir, victim.path()) else { return note("not run: no FUSE here") };
    must_break("targets made by path", || {
        naive().args(["mkdir", &dir.to_string_lossy(), "/d"]).run();
        !victim.is_untouched()
    });
    victim.restore();
    b.config["root"]["path"] = json!(dir);
    for i in 0..2 {
        b.mount(json!({ "destination": format!("/d/m{i}"), "type": "tmpfs", "source": "tmpfs", "options": ["size=4k"] }));
    }
    b.config["linux"]["maskedPaths"] = json!(["/d/file", "/file", "/proc/keys"]);
    b.config["linux"]["devices"] = json!([{ "path": "/n/null", "type": "c", "major": 1, "minor": 3 }]);
    b.config["process"]["cwd"] = json!("/w/made");
    let (total, mut through) = (rounds(60, 20_000), 0);
    for _ in 0..total {
        let finished = b.brig("create").arg(&b.id).detached().run();
        // All is made by then. There is no file in it to be run.
        through += usize::from(finished.both().contains("executable file not found"));
        b.delete();
        victim.assert_untouched();
        assert!(host::mounts_below(victim.path()).is_empty());
    }
    assert!(through > 0, "no container got as far as its program");
    note(&format!("{total} creations, {through} of them got as far as the program"));
    drop(liar);
}
