//! A task in an uninterruptible wait: no signal reaches it, no freezer stops it. It reads from a file system whose
//! server has taken the request and does not answer.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use brig_cgroup::Error;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::view::{Process, View, at_once, in_each_view, soon};

/// A FUSE file system that answers to nothing but its initialization.
struct DeadServer {
    device: Option<File>,
    place: PathBuf,
}

/// Length of `struct fuse_out_header` and `struct fuse_init_out`.
const INIT_OUT: u32 = 16 + 64;

impl DeadServer {
    fn mount(view: &View) -> Option<Self> {
        let Ok(device) = OpenOptions::new().read(true).write(true).open("/dev/fuse") else {
            println!("skipped: no /dev/fuse");
            return None;
        };
        let place = std::env::temp_dir().join(format!("brig-{}", view.place.replace('/', "-")));
        fs::create_dir_all(&place).unwrap();
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
        let options = std::ffi::CString::new(options).unwrap();
        mount("brig-test", &place, "fuse", MountFlags::empty(), options.as_c_str()).unwrap();
        let mut server = Self { device: Some(device), place };
        let request = server.take();
        let mut reply = Vec::new();
        reply.extend(INIT_OUT.to_ne_bytes());
        reply.extend(0_u32.to_ne_bytes());
        reply.extend(&request[8..16]); // the request's number
        reply.extend(7_u32.to_ne_bytes());
        reply.extend(31_u32.to_ne_bytes());
        reply.resize(usize::try_from(INIT_OUT).unwrap(), 0);
        server.device.as_mut().unwrap().write_all(&reply).unwrap();
        Some(server)
    }

    /// Takes a request.
    fn take(&mut self) -> Vec<u8> {
        let mut request = vec![0; 1 << 17];
        let length = self.device.as_mut().unwrap().read(&mut request).unwrap();
        request.truncate(length);
        request
    }

    /// Fails all requests.
    fn end(&mut self) {
        self.device = None;
    }
}

impl Drop for DeadServer {
    fn drop(&mut self) {
        self.end();
        let _ = unmount(&self.place, UnmountFlags::DETACH);
        let _ = fs::remove_dir(&self.place);
    }
}

#[test]
fn it_is_named_and_all_goes_on_later() {
    in_each_view("stuck::it_is_named_and_all_goes_on_later", |view| {
        let Some(server) = DeadServer::mount(view) else {
            return;
        };
        let cgroup = view.make("x");
        let process = Process::sh(&cgroup, &format!("exec cat {}/file", server.place.display()));
        // Dropped first, should the test fail: the process ends only then.
        let mut server = server;
        server.take();
        // It sends its request a moment before it waits for the answer: interruptibly (S) until the first signal, which
        // the freezer's is too, and from then on for good (D).
        let limit = soon();
        let stat = format!("/proc/{}/stat", process.pid());
        let waits = || {
            let stat = fs::read_to_string(&stat).unwrap();
            stat.contains(") S ") || stat.contains(") D ")
        };
        while !waits() {
            assert!(std::time::Instant::now() < limit, "it does not wait");
            std::thread::yield_now();
        }

        let error = cgroup.freeze(at_once()).unwrap_err().to_string();
        assert!(error.contains("unable to freeze"), "{error}");
        assert!(!cgroup.self_frozen(soon()).unwrap());

        cgroup.kill_all(at_once()).unwrap();
        let error = cgroup.wait_empty(at_once()).unwrap_err();
        let Error::Survivors { left, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!((left[0].pid, left[0].comm.as_str(), left[0].state), (process.pid(), "cat", 'D'));
        assert!(left[0].syscall.is_some());
        let text = error.to_string();
        assert!(text.contains("(cat) in state D (uninterruptible), in system call"), "{text}");
        // Frozen or not, paused or not, it is said again and again.
        let text = cgroup.remove(at_once()).unwrap_err().to_string();
        assert!(text.contains("device or resource busy: process"), "{text}");
        assert!(text.contains("(cat) in state D"), "{text}");
        let error = cgroup.freeze(at_once()).unwrap_err().to_string();
        assert!(error.contains("unable to freeze: process"), "{error}");

        server.end();
        cgroup.wait_empty(soon()).unwrap();
        cgroup.remove(soon()).unwrap();
        assert!(!cgroup.exists().unwrap());
    });
}
