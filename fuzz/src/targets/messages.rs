//! What the container's process says, what is on disk about it, and the image's user list.

use std::os::fd::OwnedFd;

use brig_runtime::fuzzing;

/// The first byte says whether a descriptor comes with the message.
pub fn messages(bytes: &[u8]) {
    let Some((flag, message)) = bytes.split_first() else { return };
    let fd =
        flag.is_multiple_of(16).then(|| std::fs::File::open("/dev/null").map(OwnedFd::from).ok()).flatten();
    fuzzing::message(message, fd);
}

pub fn message_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for tag in (0_u8..40).chain([100, 101, 102, 103, 104, 105]) {
        for step in [0, 3, 9] {
            let mut message = vec![tag.wrapping_mul(16), tag, 0, step, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0];
            message.extend_from_slice(b"what went wrong\0look here");
            seeds.push(message);
        }
    }
    seeds
}

pub fn record(bytes: &[u8]) {
    fuzzing::record(bytes);
}

pub fn record_seeds() -> Vec<Vec<u8>> {
    vec![
        br#"{"version":1,"stage":"creating","creator":{"pid":1,"start":2,"inode":3},"oci_version":"1.2.0","bundle":"/b","rootfs":"/b/rootfs","cgroup":{"mode":"v2","groups":[{"unified":true,"mount":"/sys/fs/cgroup","path":"a"}]},"namespaces":1,"own_pid_namespace":true,"process":{"args":["a"],"cwd":"/"}}"#.to_vec(),
        br#"{"version":1,"stage":"created","boot":"x","creator":{"pid":1,"start":2,"inode":3},"init":{"pid":9,"start":18446744073709551615,"inode":0},"created":5,"oci_version":"1","bundle":"/b","rootfs":"/r","annotations":{"a":"b"},"cgroup":{"driver":"cgroupfs","mode":"hybrid","rootless":true,"explicit":true,"groups":[{"controllers":["cpu"],"mount":"/m","path":"p/q"}]},"namespaces":0,"own_pid_namespace":false,"rootless":true,"keep_keyring":true,"process":{"user":{"uid":1}},"personality":8,"memory_policy":{"mode":"MPOL_BIND","nodes":"0"},"filter":{"listener_path":"/s","listener_metadata":"m"},"resources":{"pids":{"limit":5}},"hooks":{"poststop":[{"path":"/x"}]},"mounted_over":7,"called_as":"runc"}"#.to_vec(),
        br#"{"id":"e","creator":{"pid":1,"start":2,"inode":3},"args":["a"],"started":1}"#.to_vec(),
    ]
}

pub fn passwd(bytes: &[u8]) {
    for uid in [0, 1000, u32::MAX] {
        fuzzing::user_list(bytes, uid);
    }
}

pub fn passwd_seeds() -> Vec<Vec<u8>> {
    vec![b"root:x:0:0:root:/root:/bin/sh\n# comment\nc:x:1000:1000::/home/c:/bin/sh\nd:x:1001:1:\xff:/h:\nn:x:5:5:::\n".to_vec()]
}
