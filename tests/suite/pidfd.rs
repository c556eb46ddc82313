//! `--pidfd-socket`: where it works, when it comes, and sockets that nobody can send to.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};

use brig_sys::process::{ExitStatus, pidfd_info};
use brig_tests::{
    Bundle, Pty, Run, Socket, Spawned, better_than_runc, fails_before_runc, host, is_other_runtime, json,
    note, only_brig, others_may_fail, runtime,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};

fn sleeping() -> Bundle {
    let b = Bundle::sleeping();
    b.start();
    b
}

/// The pidfd that has been sent by now.
#[track_caller]
fn sent(socket: &Socket, data: &[u8]) -> OwnedFd {
    assert!(socket.has_connection(), "nothing was sent");
    let mut message = socket.receive();
    assert_eq!(message.data, data);
    assert_eq!(message.fds.len(), 1);
    message.fds.remove(0)
}

/// How the process ended, as the kernel tells everybody who has a pidfd. `None` before Linux 6.15.
fn end_of(pidfd: &OwnedFd) -> Option<ExitStatus> {
    let limit = Timespec { tv_sec: 30, tv_nsec: 0 };
    let mut fds = [PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN)];
    assert_eq!(poll(&mut fds, Some(&limit)), Ok(1), "it does not end");
    // Only then has its parent, which is not this process, asked for its status.
    let mut fds = [PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::empty())];
    let hung_up = poll(&mut fds, Some(&limit));
    let info = pidfd_info(pidfd.as_fd()).and_then(|info| info.exit);
    if info.is_none() {
        note("status not checked: this kernel's pidfds do not tell it");
    } else {
        assert_eq!(hung_up, Ok(1));
    }
    info
}

fn ended_with(pidfd: &OwnedFd, status: ExitStatus) {
    assert!(end_of(pidfd).is_none_or(|found| found == status));
}

/// Sockets that cannot be reached, with the end of the message.
fn unreachable(dir: &Path) -> Vec<(PathBuf, &'static str)> {
    let file = dir.join("file");
    fs::write(&file, "").unwrap();
    let abandoned = dir.join("abandoned");
    drop(UnixListener::bind(&abandoned).unwrap());
    let datagram = dir.join("datagram");
    // Not dropped: it has to be there.
    std::mem::forget(UnixDatagram::bind(&datagram).unwrap());
    vec![
        (dir.join("missing"), "no such file or directory"),
        (dir.join("a".repeat(120)), "no such file or directory"),
        (dir.join("a".repeat(300)), "file name too long"),
        (file.join("below"), "not a directory"),
        (file, "connection refused"),
        (dir.to_owned(), "connection refused"),
        (abandoned, "connection refused"),
        (datagram, "protocol wrong type for socket"),
    ]
}

#[test]
fn sockets_that_cannot_be_reached_are_errors_before_anything_is_made() {
    if fails_before_runc((1, 2), "has no --pidfd-socket") {
        return;
    }
    better_than_runc("knows no path longer than an address", || {
        let (b, c) = (Bundle::default(), sleeping());
        for (path, reason) in unreachable(b.path()) {
            let text = format!("failed to dail {0}: dial unix {0}: connect: {reason}", path.display());
            for command in ["create", "run"] {
                b.brig(command).arg("--pidfd-socket").arg(&path).arg(&b.id).run().exits(1).says(&text);
                b.assert_gone();
            }
            let exec = c.brig("exec").arg("--pidfd-socket").arg(&path).args([&c.id, "touch", "/ran"]).run();
            exec.exits(255).says(&text);
            assert_eq!(c.members().len(), 1);
        }
        assert!(!c.rootfs().join("ran").exists());
    });
}

/// Nobody accepts, and there is no room for one more who waits for that.
struct Full {
    path: PathBuf,
    _all: Vec<OwnedFd>,
}

impl Full {
    fn new(path: PathBuf) -> Self {
        let make = |flags| socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        let address = SocketAddrUnix::new(&path).unwrap();
        let listener = make(SocketFlags::CLOEXEC);
        bind(&listener, &address).unwrap();
        listen(&listener, 0).unwrap();
        let mut all = vec![listener];
        loop {
            let one = make(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK);
            let connected = connect(&one, &address);
            all.push(one);
            if connected.is_err() {
                return Self { path, _all: all };
            }
        }
    }
}

#[test]
fn a_socket_that_nobody_accepts_at_ends_the_command_in_time() {
    only_brig("runc waits for ever", || {
        let (b, c) = (Bundle::default(), sleeping());
        let full = Full::new(b.path().join("full"));
        let create = b.brig("create").arg("--pidfd-socket").arg(&full.path).arg(&b.id).spawn();
        let exec = c.brig("exec").arg("--pidfd-socket").arg(&full.path).args([&c.id, "true"]).spawn();
        let text = "connect: resource temporarily unavailable";
        create.finish().exits(1).says(text);
        exec.finish().exits(255).says(text);
        b.assert_gone();
        assert_eq!(c.members().len(), 1);
    });
}

#[test]
fn nobody_has_to_read_or_to_accept() {
    if fails_before_runc((1, 2), "has no --pidfd-socket") {
        return;
    }
    let b = Bundle::sleeping();
    let socket = Socket::new(b.path().join("socket"));
    b.brig("create").arg("--pidfd-socket").arg(&socket.path).arg(&b.id).detached().ok();
    b.brig("start").arg(&b.id).ok();
    b.brig("exec").arg("--pidfd-socket").arg(&socket.path).args([&b.id, "sh", "-c", "exit 3"]).run().exits(3);
    // It is all there for whoever comes late.
    ended_with(
        &{
            sent(&socket, b"standard");
            sent(&socket, b"setns")
        },
        ExitStatus::Exited(3),
    );
}

#[test]
fn a_reader_that_goes_away_fails_the_command() {
    if fails_before_runc((1, 2), "has no --pidfd-socket") {
        return;
    }
    let mut b = Bundle::sleeping();
    let path = b.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    // The connection is there before the hook runs; then it is closed.
    let script =
        format!("touch {0}/hook; while [ ! -e {0}/closed ]; do sleep 0.01; done", b.path().display());
    b.config["hooks"] = json!({ "createRuntime": [{ "path": "/bin/sh", "args": ["sh", "-c", script] }] });
    let create = b.brig("create").arg("--pidfd-socket").arg(&path).arg(&b.id).detached().spawn();
    host::eventually("the hook", || b.path().join("hook").exists());
    drop(listener.accept().unwrap());
    fs::write(b.path().join("closed"), "").unwrap();
    create.finish().exits(1).says("failed to setup pidfd").says("broken pipe");
    b.assert_gone();
}

#[test]
fn a_path_longer_than_an_address() {
    better_than_runc("knows no such path", || {
        let b = Bundle::sleeping();
        let dir = b.path().join("d".repeat(100)).join("e".repeat(100));
        fs::create_dir_all(&dir).unwrap();
        let socket = Socket::new(dir.join("socket"));
        b.brig("create").arg("--pidfd-socket").arg(&socket.path).arg(&b.id).detached().ok();
        sent(&socket, b"standard");
    });
}

#[test]
fn it_has_come_when_the_command_returns_and_tells_the_end_to_whoever_has_it() {
    if fails_before_runc((1, 2), "has no --pidfd-socket") {
        return;
    }
    let b = Bundle::sh("read line </gate; exit 44");
    Run::new("mkfifo").arg(b.rootfs().join("gate")).ok();
    let socket = Socket::new(b.path().join("socket"));
    b.brig("create").arg("--pidfd-socket").arg(&socket.path).arg(&b.id).detached().ok();
    let container = sent(&socket, b"standard");
    b.brig("start").arg(&b.id).ok();
    let own = std::process::id();
    let parent = fs::read_to_string(format!("/proc/{}/stat", b.pid())).unwrap();
    assert_ne!(parent.rsplit(") ").next().unwrap().split(' ').nth(1), Some(own.to_string().as_str()));
    let exec = b.brig("exec").arg("--detach").arg("--pidfd-socket").arg(&socket.path);
    exec.args([&b.id, "sleep", "1000"]).detached().ok();
    let exec = sent(&socket, b"setns");
    rustix::process::pidfd_send_signal(&exec, rustix::process::Signal::TERM).unwrap();
    ended_with(&exec, ExitStatus::Signaled(15));
    fs::write(b.rootfs().join("gate"), "\n").unwrap();
    ended_with(&container, ExitStatus::Exited(44));
}

#[test]
fn it_comes_before_the_payload_runs() {
    only_brig("runc sends it while the payload begins", || {
        let b = sleeping();
        for n in 0..20 {
            let socket = Socket::new(b.path().join(format!("socket-{n}")));
            let ran = b.rootfs().join(format!("ran-{n}"));
            let exec = b.brig("exec").arg("--pidfd-socket").arg(&socket.path);
            let exec = exec.args([&b.id, "sh", "-c", &format!(">/ran-{n}; exit {n}")]).spawn();
            while !ran.exists() {
                std::hint::spin_loop();
            }
            let pidfd = sent(&socket, b"setns");
            exec.finish().exits(n);
            ended_with(&pidfd, ExitStatus::Exited(n));
        }
        let mut b = Bundle::sh(">/ran; exit 7");
        b.config["hooks"] =
            json!({ "startContainer": [{ "path": "/bin/touch", "args": ["touch", "/hook"] }] });
        let socket = Socket::new(b.path().join("socket"));
        let run = b.brig("run").arg("--pidfd-socket").arg(&socket.path).arg(&b.id).spawn();
        while !b.rootfs().join("hook").exists() {
            std::hint::spin_loop();
        }
        let pidfd = sent(&socket, b"standard");
        run.finish().exits(7);
        ended_with(&pidfd, ExitStatus::Exited(7));
    });
}

/// With a terminal: in the foreground it is the pty's.
fn on(pty: &Pty, run: Run) -> Spawned {
    run.stdin(pty.slave()).stdout(pty.slave()).stderr(pty.slave()).spawn()
}

#[test]
fn with_terminals() {
    if fails_before_runc((1, 2), "has no --pidfd-socket") {
        return;
    }
    let mut b = Bundle::sh("tty; read line; exit 3");
    b.config["process"]["terminal"] = true.into();
    let socket = Socket::new(b.path().join("pidfd"));
    let console = Socket::new(b.path().join("console"));
    let create = b.brig("create").arg("--pidfd-socket").arg(&socket.path);
    create.arg("--console-socket").arg(&console.path).arg(&b.id).detached().ok();
    let container = sent(&socket, b"standard");
    let mut pty = Pty::from_master(console.receive().fds.remove(0));
    b.brig("start").arg(&b.id).ok();
    pty.expect("/dev/pts/0");
    let exec = b.brig("exec").args(["-t", "-d"]).arg("--pidfd-socket").arg(&socket.path);
    let exec = exec.arg("--console-socket").arg(&console.path);
    exec.args([&b.id, "sh", "-c", "tty; read line; exit 4"]).detached().ok();
    let detached = sent(&socket, b"setns");
    let mut second = Pty::from_master(console.receive().fds.remove(0));
    second.expect("/dev/pts/1");
    let mut third = Pty::new();
    let exec = b.brig("exec").arg("-t").arg("--pidfd-socket").arg(&socket.path);
    let exec = on(&third, exec.args([&b.id, "sh", "-c", "tty; read line; exit 5"]));
    third.expect("/dev/pts/2");
    let foreground = sent(&socket, b"setns");
    third.write("\n");
    exec.finish().exits(5);
    ended_with(&foreground, ExitStatus::Exited(5));
    second.write("\n");
    ended_with(&detached, ExitStatus::Exited(4));
    pty.write("\n");
    ended_with(&container, ExitStatus::Exited(3));
}

#[test]
fn a_foreground_run_with_and_without_a_terminal() {
    if fails_before_runc((1, 2), "has no --pidfd-socket") {
        return;
    }
    for terminal in [false, true] {
        let mut b = Bundle::sh("echo here; read line; exit 6");
        b.config["process"]["terminal"] = terminal.into();
        let socket = Socket::new(b.path().join("pidfd"));
        let mut pty = Pty::new();
        let run = on(&pty, b.brig("run").arg("--pidfd-socket").arg(&socket.path).arg(&b.id));
        pty.expect("here");
        let pidfd = sent(&socket, b"standard");
        pty.write("\n");
        run.finish().exits(6);
        ended_with(&pidfd, ExitStatus::Exited(6));
        b.assert_gone();
    }
}

#[test]
fn in_user_and_pid_namespaces() {
    others_may_fail("cannot do without a procfs of its own", || {
        if fails_before_runc((1, 2), "has no --pidfd-socket") {
            return;
        }
        let other = sleeping();
        let pid_namespace = format!("/proc/{}/ns/pid", other.pid());
        for user in [false, true] {
            for pid in [None, Some(None), Some(Some(pid_namespace.as_str()))] {
                // A pid namespace of the host's user namespace cannot be joined from another one.
                if user && matches!(pid, Some(Some(_))) {
                    continue;
                }
                let mut b = Bundle::sleeping();
                b.without_namespace("pid");
                if user {
                    b.in_user_namespace();
                }
                if let Some(path) = pid {
                    b.with_namespace("pid", path);
                }
                let socket = Socket::new(b.path().join("pidfd"));
                b.brig("run").args(["-d", "--pidfd-socket"]).arg(&socket.path).arg(&b.id).detached().ok();
                let container = sent(&socket, b"standard");
                let exec = b.brig("exec").arg("--pidfd-socket").arg(&socket.path);
                exec.args([&b.id, "sh", "-c", "exit 9"]).run().exits(9);
                ended_with(&sent(&socket, b"setns"), ExitStatus::Exited(9));
                rustix::process::pidfd_send_signal(&container, rustix::process::Signal::KILL).unwrap();
                ended_with(&container, ExitStatus::Signaled(9));
            }
        }
    });
}

#[test]
fn for_an_ordinary_user() {
    only_brig("what runc needs for it differs", || {
        const USER: u32 = 4711;
        let mut b = Bundle::sleeping();
        b.with_namespace("user", None);
        let map = json!([{ "containerID": 0, "hostID": USER, "size": 1 }]);
        b.config["linux"]["uidMappings"] = map.clone();
        b.config["linux"]["gidMappings"] = map;
        b.config["linux"].as_object_mut().unwrap().remove("resources");
        b.config["linux"].as_object_mut().unwrap().remove("cgroupsPath");
        let mounts = b.config["mounts"].as_array_mut().unwrap();
        mounts.retain(|m| m["destination"] != "/sys/fs/cgroup" && m["destination"] != "/sys");
        // There is one group only.
        for mount in mounts {
            if let Some(options) = mount["options"].as_array_mut() {
                options.retain(|option| option != "gid=5");
            }
        }
        b.write_config();
        let copy = b.path().join("runtime");
        fs::copy(runtime(), &copy).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
        Run::new("chown").args(["-R", &format!("{USER}:{USER}")]).arg(b.path()).ok();
        let socket = Socket::new(b.path().join("pidfd"));
        Run::new("chown").arg(USER.to_string()).arg(&socket.path).ok();
        let as_user = |words: &[&str]| Run::new(&copy).arg("--root").arg(&b.root).args(words).uid(USER, USER);
        let (path, bundle) = (socket.path.to_str().unwrap(), b.path().to_str().unwrap());
        as_user(&["run", "-d", "--pidfd-socket", path, "--bundle", bundle, &b.id]).detached().ok();
        let container = sent(&socket, b"standard");
        as_user(&["exec", "--pidfd-socket", path, &b.id, "sh", "-c", "exit 2"]).run().exits(2);
        ended_with(&sent(&socket, b"setns"), ExitStatus::Exited(2));
        as_user(&["kill", &b.id, "KILL"]).ok();
        ended_with(&container, ExitStatus::Signaled(9));
        as_user(&["delete", &b.id]).ok();
    });
}

#[test]
fn by_an_annotation() {
    if is_other_runtime() {
        return note("not run: the annotation is crun's");
    }
    let mut b = Bundle::sleeping();
    let socket = Socket::new(b.path().join("pidfd"));
    b.config["annotations"] = json!({ "run.oci.pidfd_receiver": socket.path });
    b.create();
    sent(&socket, b"standard");
    b.delete();
    // The flag is more than the annotation.
    let flag = Socket::new(b.path().join("flag"));
    b.brig("create").arg("--pidfd-socket").arg(&flag.path).arg(&b.id).detached().ok();
    sent(&flag, b"standard");
    assert!(!socket.has_connection());
    b.delete();
    b.config["annotations"] = json!({ "run.oci.pidfd_receiver": "/no/such" });
    b.brig("create").arg(&b.id).run().exits(1).says("failed to dail /no/such");
    b.assert_gone();
}
