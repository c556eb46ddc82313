//! The init program, run as brig runs it but without any namespace: its channel is standard input.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests fail by panicking, and start processes by std"
)]

use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Child, Command, Stdio};

use brig_sys::init::InitSpec;
use brig_sys::init::abi::{FLAG_SEARCH, GO, HEAD_LEN, Head, Params, START, Step, TEXT_MAX, Tag};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

fn cstrings(list: &[&str]) -> Vec<CString> {
    list.iter().map(|s| CString::new(*s).unwrap()).collect()
}

fn spec(candidates: &[&str], args: &[&str]) -> InitSpec {
    InitSpec {
        params: Params { sync_fd: 0, fifo_fd: -1, record_fd: -1, label_fd: -1, ..Params::default() },
        candidates: cstrings(candidates),
        args: cstrings(args),
        env: cstrings(&["GREETING=hello"]),
        comm: c"brig:[2:INIT]".to_owned(),
        ..InitSpec::default()
    }
}

fn spawn(spec: &InitSpec) -> (OwnedFd, Child) {
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    let program = spec.executable().unwrap();
    let path = format!("/proc/{}/fd/{}", std::process::id(), program.as_raw_fd());
    let child = Command::new(path).stdin(Stdio::from(theirs)).stdout(Stdio::piped()).spawn().unwrap();
    (ours, child)
}

fn message(channel: &OwnedFd) -> Option<Head> {
    let mut buf = [0; HEAD_LEN + TEXT_MAX];
    let n = rustix::io::read(channel, &mut buf).unwrap();
    Head::decode(buf.get(..n).unwrap())
}

#[test]
fn it_reports_ready_waits_and_becomes_the_program() {
    let (channel, child) = spawn(&spec(&["/bin/sh"], &["sh", "-c", "echo $GREETING $0", "you"]));
    assert_eq!(message(&channel).unwrap().tag, Tag::Ready as u16);
    rustix::io::write(&channel, &[GO]).unwrap();
    // The channel closes with the execve; standard input is not kept either, since it was the channel here.
    assert_eq!(message(&channel), None);
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "hello you\n");
}

#[test]
fn a_missing_program_is_told_before_ready() {
    let (channel, mut child) = spawn(&spec(&["/nowhere/x"], &["x"]));
    let head = message(&channel).unwrap();
    assert_eq!((head.tag, head.step, head.errno), (Tag::Failed as u16, Step::Lookup as u16, 2));
    assert_eq!(child.wait().unwrap().code(), Some(255));
}

#[test]
fn a_directory_is_told_from_a_missing_file() {
    let (channel, mut child) = spawn(&spec(&["/tmp"], &["x"]));
    assert_eq!(message(&channel).unwrap().errno, 21);
    child.wait().unwrap();
}

#[test]
fn a_search_passes_over_what_cannot_be_run() {
    let mut spec = spec(&["/nowhere/true", "/etc/passwd", "/tmp", "/bin/true"], &["true"]);
    spec.params.flags = FLAG_SEARCH;
    let (channel, mut child) = spawn(&spec);
    assert_eq!(message(&channel).unwrap().tag, Tag::Ready as u16);
    rustix::io::write(&channel, &[GO]).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn it_ends_when_brig_is_gone_before_the_container_counts_as_created() {
    let (channel, mut child) = spawn(&spec(&["/bin/true"], &["true"]));
    assert_eq!(message(&channel).unwrap().tag, Tag::Ready as u16);
    drop(channel);
    assert_eq!(child.wait().unwrap().code(), Some(255));
}

#[test]
fn a_failed_execve_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("script");
    std::fs::copy("/etc/passwd", &script).unwrap();
    std::fs::write(&script, "#!/nowhere/interpreter\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let (channel, mut child) = spawn(&spec(&[script.to_str().unwrap()], &["x"]));
    assert_eq!(message(&channel).unwrap().tag, Tag::Ready as u16);
    rustix::io::write(&channel, &[GO]).unwrap();
    let head = message(&channel).unwrap();
    assert_eq!((head.step, head.errno), (Step::Exec as u16, 2));
    child.wait().unwrap();
}

#[test]
fn a_replaced_record_outlives_brig() {
    let dir = tempfile::tempdir().unwrap();
    let (record, fifo) = (dir.path().join("record"), dir.path().join("fifo"));
    std::fs::write(&record, "creating").unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let open = |path, flags| rustix::fs::open(path, flags, rustix::fs::Mode::empty()).unwrap();
    let record_fd = open(&record, rustix::fs::OFlags::PATH);
    let fifo_fd = open(&fifo, rustix::fs::OFlags::RDWR);
    let mut spec = spec(&["/bin/true"], &["true"]);
    spec.params.record_fd = record_fd.as_raw_fd();
    spec.params.fifo_fd = fifo_fd.as_raw_fd();
    let (channel, mut child) = spawn(&spec);
    assert_eq!(message(&channel).unwrap().tag, Tag::Ready as u16);
    // What the creator does last, and then it is killed before it can say so.
    std::fs::write(dir.path().join("new"), "created").unwrap();
    std::fs::rename(dir.path().join("new"), &record).unwrap();
    drop(channel);
    assert_eq!(child.try_wait().unwrap(), None);
    rustix::io::write(&fifo_fd, &[START]).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
