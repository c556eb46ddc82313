//! `/dev`: devices and links.

use super::*;

#[test]
fn the_default_devices() {
    let b = Bundle::sh(
        "cd /dev; for d in null zero full random urandom tty; do stat -c '%n %F %a %u:%g %t:%T' $d; done",
    );
    let expected = [
        "null character special file 666 0:0 1:3",
        "zero character special file 666 0:0 1:5",
        "full character special file 666 0:0 1:7",
        "random character special file 666 0:0 1:8",
        "urandom character special file 666 0:0 1:9",
        "tty character special file 666 0:0 5:0",
    ];
    let out = b.run().ok().out;
    assert_eq!(out.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn the_default_devices_work() {
    let b = Bundle::sh(
        "echo x >/dev/null && head -c 4 /dev/zero | od -An -tx1 && head -c 1 /dev/urandom >/dev/null",
    );
    assert_eq!(b.run().ok().out, " 00 00 00 00\n");
}

#[test]
fn the_links() {
    let b = Bundle::sh(
        "cd /dev; for l in fd stdin stdout stderr ptmx; do readlink $l; done; [ ! -e /dev/console ]",
    );
    let expected = ["/proc/self/fd", "/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2", "pts/ptmx"];
    assert_eq!(b.run().ok().out.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn devices_of_the_config() {
    let mut b = Bundle::sh(
        "stat -c '%F %a %u:%g %t:%T' /dev/mine /dev/disk /dev/deep/fifo /other; for d in mine disk deep/fifo; do test -e /dev/$d; done",
    );
    b.config["linux"]["devices"] = json!([
        { "path": "/dev/mine", "type": "c", "major": 10, "minor": 229, "fileMode": 0o640, "uid": 11, "gid": 12 },
        { "path": "/dev/disk", "type": "b", "major": 7, "minor": 250, "fileMode": 0o600 },
        { "path": "/dev/deep/fifo", "type": "p", "fileMode": 0o644 },
        { "path": "/other", "type": "u", "major": 1, "minor": 3, "fileMode": 0o666, "uid": 1000 },
    ]);
    let expected = [
        "character special file 640 11:12 a:e5",
        "block special file 600 0:0 7:fa",
        "fifo 644 0:0 0:0",
        "character special file 666 1000:0 1:3",
    ];
    let out = b.run().ok().out;
    assert_eq!(out.lines().collect::<Vec<_>>(), expected);
    fs::remove_file(b.rootfs().join("other")).unwrap();
}

#[test]
fn a_device_of_an_unknown_type() {
    let mut b = Bundle::default();
    b.config["linux"]["devices"] = json!([{ "path": "/dev/mine", "type": "z", "major": 1, "minor": 3 }]);
    b.run().run().exits(1).says("invalid device type \"z\"");
    b.assert_gone();
}

#[test]
fn a_device_that_is_there_is_left_as_it_is() {
    let mut b = Bundle::sh("cat /dev/full");
    // Without the tmpfs, /dev is a directory of the image.
    b.config["mounts"].as_array_mut().unwrap().retain(|m| m["destination"] != "/dev");
    fs::write(b.rootfs().join("dev/full"), "a file\n").unwrap();
    assert_eq!(b.run().ok().out, "a file\n");
}

#[test]
fn a_dev_that_is_bound_is_left_alone() {
    if fails_before_runc((1, 2), "needs /dev/null") {
        return;
    }
    let mut b = Bundle::sh("ls /dev");
    let dev = b.path().join("mydev");
    fs::create_dir(&dev).unwrap();
    fs::write(dev.join("only"), "").unwrap();
    b.config["mounts"] = json!([
        { "destination": "/proc", "type": "proc", "source": "proc" },
        bind(&dev, "/dev", &[]),
    ]);
    b.config["linux"]["maskedPaths"] = json!([]);
    assert_eq!(b.run().ok().out, "only\n");
    assert_eq!(fs::read_dir(&dev).unwrap().count(), 1);
}

#[test]
fn ptmx_of_the_image_is_replaced() {
    let mut b = Bundle::sh("readlink /dev/ptmx");
    b.config["mounts"].as_array_mut().unwrap().retain(|m| m["destination"] != "/dev");
    fs::write(b.rootfs().join("dev/ptmx"), "").unwrap();
    assert_eq!(b.run().ok().out, "pts/ptmx\n");
}
