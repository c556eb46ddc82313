//! Terminals: in the foreground, and handed over by a socket.

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::symlink;

use brig_tests::{
    Bundle, Finished, Pty, Run, Socket, Spawned, better_than_runc, fails_before_runc, is_older_runc, json,
    others_may_fail, since_runc,
};

/// A bundle whose process has a terminal.
fn with_terminal(script: &str) -> Bundle {
    let mut b = Bundle::sh(script);
    b.config["process"]["terminal"] = true.into();
    b
}

/// Starts a command with the terminal for all three streams.
fn on(pty: &Pty, run: Run) -> Spawned {
    let slave = || pty.slave();
    run.stdin(slave()).stdout(slave()).stderr(slave()).spawn()
}

/// Reads all that there is and the end of the command.
fn finish(pty: &mut Pty, run: Spawned) -> Finished {
    let finished = run.finish();
    pty.read();
    while pty.read_now() {}
    finished
}

#[test]
fn a_foreground_run_relays_the_terminal() {
    let b = with_terminal("tty; read line; echo \"<$line>\"; exit 5");
    let mut pty = Pty::new();
    let run = on(&pty, b.run());
    pty.expect("/dev/pts/0");
    pty.write("hello\n");
    pty.expect("<hello>");
    run.finish().exits(5);
    b.assert_gone();
}

#[test]
fn all_output_arrives() {
    let b = with_terminal("seq 1 20000; echo end-of-it");
    let mut pty = Pty::new();
    let run = on(&pty, b.run());
    pty.expect("end-of-it");
    finish(&mut pty, run).exits(0);
    let lines = pty.seen.lines().filter(|line| line.parse::<u32>().is_ok()).count();
    assert_eq!(lines, 20_000);
}

#[test]
fn output_before_the_end_is_not_lost() {
    for _ in 0..10 {
        let b = with_terminal("echo last words");
        let mut pty = Pty::new();
        let run = on(&pty, b.run());
        finish(&mut pty, run).exits(0);
        assert!(pty.seen.contains("last words"), "{:?}", pty.seen);
    }
}

#[test]
fn the_size_is_taken_over_and_followed() {
    let b = with_terminal("stty size; trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done");
    let mut pty = Pty::new();
    pty.resize(91, 37);
    let run = on(&pty, b.run());
    pty.expect("37 91");
    pty.expect("ready");
    pty.resize(80, 44);
    run.signal(28);
    pty.expect("44 80");
    b.delete();
    run.finish();
}

#[test]
fn the_hosts_terminal_is_raw_meanwhile_and_restored() {
    others_may_fail("leaves the processing of output on", || {
        if fails_before_runc((1, 2), "leaves the processing of output on") {
            return;
        }
        use rustix::termios::{LocalModes, OutputModes, tcgetattr};
        let b = with_terminal("echo ready; read line");
        let mut pty = Pty::new();
        let slave = pty.slave();
        let modes = || {
            let t = tcgetattr(slave.as_fd()).unwrap();
            (t.input_modes, t.output_modes, t.local_modes)
        };
        let before = modes();
        let run = on(&pty, b.run());
        pty.expect("ready");
        let (_, output, local) = modes();
        assert!(!local.intersects(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG), "{local:?}");
        assert!(!output.contains(OutputModes::OPOST | OutputModes::ONLCR), "{output:?}");
        pty.write("\n");
        run.finish().exits(0);
        assert_eq!(modes(), before);
    });
}

#[test]
fn control_characters_are_the_containers() {
    let b = with_terminal("trap 'echo interrupted; exit 6' INT; echo ready; while :; do sleep 0.05; done");
    let mut pty = Pty::new();
    let run = on(&pty, b.run());
    pty.expect("ready");
    pty.write("\u{3}");
    pty.expect("interrupted");
    run.finish().exits(6);
}

#[test]
fn the_end_of_input_is_a_character() {
    let b = with_terminal("echo ready; cat; exit 7");
    let mut pty = Pty::new();
    let run = on(&pty, b.run());
    // Before that, the character would be one for the host's terminal.
    pty.expect("ready");
    pty.write("line\n\u{4}");
    pty.expect("line");
    run.finish().exits(7);
}

#[test]
fn one_stream_that_is_a_terminal_is_enough() {
    let b = with_terminal("tty; exit 8");
    let mut pty = Pty::new();
    let run = b.run().stdout(pty.slave()).spawn();
    pty.expect("/dev/pts/0");
    run.finish().exits(8);
}

#[test]
fn a_terminal_is_needed_for_one() {
    let b = with_terminal("true");
    b.write_config();
    // Away from the terminal that the tests may have.
    let run = Run::new("setsid").args(["--wait"]).arg(brig_tests::runtime()).arg("--root").arg(&b.root);
    let finished = run.arg("run").arg("--bundle").arg(b.path()).arg(&b.id).run();
    finished.exits(1).says("/dev/tty: no such device or address");
    b.assert_gone();
}

#[test]
fn a_controlling_terminal() {
    let b = with_terminal("echo to the terminal >/dev/tty; cut -d' ' -f1,6,7 /proc/$$/stat");
    let mut pty = Pty::new();
    let run = on(&pty, b.run());
    pty.expect("to the terminal");
    finish(&mut pty, run).exits(0);
    // Its session, and major 136 in the terminal's number.
    assert!(pty.seen.contains("1 1 34816"), "{:?}", pty.seen);
}

#[test]
fn the_console_is_the_terminal() {
    let b = with_terminal(
        "stat -c %t:%T /dev/console; stat -c %t:%T /dev/pts/0; echo via console >/dev/console; ls -la /dev/console",
    );
    let mut pty = Pty::new();
    let run = on(&pty, b.run());
    pty.expect("via console");
    finish(&mut pty, run).exits(0);
    assert_eq!(pty.seen.matches("88:0").count(), 2, "{:?}", pty.seen);
}

#[test]
fn the_terminal_belongs_to_the_user() {
    let mut b = with_terminal("stat -c %u:%a $(tty)");
    b.config["process"]["user"] = json!({ "uid": 1000, "gid": 1000 });
    let mut pty = Pty::new();
    let run = on(&pty, b.run());
    pty.expect("1000:620");
    run.finish().exits(0);
}

#[test]
fn a_size_of_the_config() {
    let mut b = with_terminal("stty size; exec sleep 1000");
    b.config["process"]["consoleSize"] = json!({ "height": 21, "width": 66 });
    let socket = Socket::new(b.path().join("console"));
    b.brig("create").arg("--console-socket").arg(&socket.path).arg(&b.id).detached().ok();
    let mut pty = Pty::from_master(socket.receive().fds.remove(0));
    b.brig("start").arg(&b.id).ok();
    pty.expect("21 66");
}

#[test]
fn a_socket_gets_the_terminal() {
    let b = with_terminal("echo hello; read line; echo \"<$line>\"; exec sleep 1000");
    let socket = Socket::new(b.path().join("console"));
    // Nobody accepts before the command has ended.
    b.brig("create").arg("--console-socket").arg(&socket.path).arg(&b.id).detached().ok();
    let mut message = socket.receive();
    let name = if is_older_runc((1, 2)) { "/dev/ptmx" } else { "/dev/pts/ptmx" };
    assert_eq!(String::from_utf8_lossy(&message.data), name);
    assert_eq!(message.fds.len(), 1);
    let mut pty = Pty::from_master(message.fds.remove(0));
    b.brig("start").arg(&b.id).ok();
    pty.expect("hello");
    pty.write("there\n");
    pty.expect("<there>");
}

#[test]
fn run_detached_with_a_socket() {
    let b = with_terminal("tty; exec sleep 1000");
    let socket = Socket::new(b.path().join("console"));
    let run = b.brig("run").arg("--detach").arg("--console-socket").arg(&socket.path);
    run.arg(&b.id).detached().ok();
    Pty::from_master(socket.receive().fds.remove(0)).expect("/dev/pts/0");
}

#[test]
fn a_socket_with_a_long_path() {
    better_than_runc("is limited by the address of a socket", || {
        let b = with_terminal("echo hello; exec sleep 1000");
        let dir = b.path().join("d".repeat(100));
        fs::create_dir(&dir).unwrap();
        let socket = Socket::new(dir.join("s".repeat(60)));
        b.brig("create").arg("--console-socket").arg(&socket.path).arg(&b.id).detached().ok();
        let mut pty = Pty::from_master(socket.receive().fds.remove(0));
        b.brig("start").arg(&b.id).ok();
        pty.expect("hello");
    });
}

#[test]
fn sockets_that_cannot_be_reached() {
    let b = with_terminal("true");
    let create = |path: &str| b.brig("create").args(["--console-socket", path, &b.id]).run();
    create("/no/such/socket").exits(1).says("dial unix /no/such/socket: connect: no such file or directory");
    b.assert_gone();
    let closed = b.path().join("closed");
    drop(Socket::new(&closed));
    create(closed.to_str().unwrap()).exits(1).says("connect: connection refused");
    b.assert_gone();
}

#[test]
fn a_socket_goes_with_a_terminal_and_detaching() {
    let b = with_terminal("true");
    let socket = Socket::new(b.path().join("console"));
    let without = b.brig("create").arg(&b.id).run();
    without.exits(1).says("cannot allocate tty if runc will detach without setting console socket");
    let text = "cannot use console socket if runc will not detach or allocate tty";
    b.brig("run").arg("--console-socket").arg(&socket.path).arg(&b.id).run().exits(1).says(text);
    let mut b = Bundle::default();
    b.config["process"]["terminal"] = false.into();
    b.brig("create").arg("--console-socket").arg(&socket.path).arg(&b.id).run().exits(1).says(text);
    b.assert_gone();
}

/// Case 6: CVE-2025-52565.
#[test]
fn a_console_that_is_a_link() {
    if fails_before_runc((1, 2), "follows it") {
        return;
    }
    let mut b = with_terminal("grep sysrq /proc/self/mountinfo; exec sleep 1000");
    b.config["mounts"] = json!([
        { "destination": "/proc", "type": "proc", "source": "proc" },
        { "destination": "/dev/pts", "type": "devpts", "source": "devpts", "options": ["newinstance", "ptmxmode=0666", "mode=0620"] },
    ]);
    b.config["linux"]["readonlyPaths"] = json!([]);
    b.config["linux"]["maskedPaths"] = json!([]);
    symlink("/proc/sysrq-trigger", b.rootfs().join("dev/console")).unwrap();
    let socket = Socket::new(b.path().join("console"));
    let create = b.brig("create").arg("--console-socket").arg(&socket.path).arg(&b.id).detached().run();
    if create.code() == 0 {
        let table = fs::read_to_string(format!("/proc/{}/mountinfo", b.pid())).unwrap();
        assert!(!table.contains("sysrq-trigger"), "{table}");
    }
}

/// Case 6, the other direction: what is in `/dev/pts` of the image.
#[test]
fn the_terminals_of_the_image_are_not_used() {
    let mut b = with_terminal("exec sleep 1000");
    b.config["mounts"] = json!([{ "destination": "/proc", "type": "proc", "source": "proc" }]);
    b.config["linux"]["readonlyPaths"] = json!([]);
    b.config["linux"]["maskedPaths"] = json!([]);
    fs::create_dir(b.rootfs().join("dev/pts")).unwrap();
    symlink("/proc/sysrq-trigger", b.rootfs().join("dev/pts/ptmx")).unwrap();
    let socket = Socket::new(b.path().join("console"));
    b.brig("create").arg("--console-socket").arg(&socket.path).arg(&b.id).run().exits(1);
    b.assert_gone();
}

#[test]
fn exec_relays_the_terminal() {
    if fails_before_runc((1, 2), "sets the size when the process runs already") {
        return;
    }
    let b = Bundle::sleeping();
    b.start();
    let mut pty = Pty::new();
    pty.resize(93, 39);
    let script =
        "tty; stty size; [ -e /dev/console ] || echo no console; read line; echo \"<$line>\"; exit 5";
    let run = b.brig("exec").args(["--tty", &b.id, "sh", "-c", script]);
    let run = on(&pty, run);
    pty.expect("/dev/pts/0");
    pty.expect("39 93");
    pty.expect("no console");
    pty.write("hello\n");
    pty.expect("<hello>");
    run.finish().exits(5);
}

#[test]
fn exec_detached_with_a_socket() {
    let b = Bundle::sleeping();
    b.start();
    let socket = Socket::new(b.path().join("console"));
    let run = b.brig("exec").args(["-t", "-d", "--console-socket"]).arg(&socket.path);
    run.args([&b.id, "sh", "-c", "tty; exec sleep 1000"]).detached().ok();
    let mut message = socket.receive();
    assert_eq!(message.fds.len(), 1);
    Pty::from_master(message.fds.remove(0)).expect("/dev/pts/0");
    // A second terminal is another one.
    let run = b.brig("exec").args(["-t", "-d", "--console-socket"]).arg(&socket.path);
    run.args([&b.id, "sh", "-c", "tty; exec sleep 1000"]).detached().ok();
    Pty::from_master(socket.receive().fds.remove(0)).expect("/dev/pts/");
}

#[test]
fn exec_with_a_terminal_from_a_file() {
    let b = Bundle::sleeping();
    b.start();
    let file = b.path().join("process.json");
    let process = json!({
        "terminal": true,
        "consoleSize": { "height": 22, "width": 77 },
        "args": ["sh", "-c", "stty size; exec sleep 1000"],
        "cwd": "/",
        "env": ["PATH=/bin"],
    });
    fs::write(&file, process.to_string()).unwrap();
    let socket = Socket::new(b.path().join("console"));
    let run = b.brig("exec").args(["-d", "--console-socket"]).arg(&socket.path).arg("-p").arg(&file);
    run.arg(&b.id).detached().ok();
    Pty::from_master(socket.receive().fds.remove(0)).expect("22 77");
}

#[test]
fn exec_refuses_what_does_not_fit() {
    let b = Bundle::sleeping();
    b.start();
    let socket = Socket::new(b.path().join("console"));
    let exec = |flags: &[&str]| b.brig("exec").args(flags).args([&b.id, "true"]).run();
    exec(&["-t", "-d"])
        .exits(255)
        .says("cannot allocate tty if runc will detach without setting console socket");
    let path = socket.path.to_str().unwrap();
    let text = "cannot use console socket if runc will not detach or allocate tty";
    exec(&["-t", "--console-socket", path]).exits(255).says(text);
    exec(&["-d", "--console-socket", path]).exits(255).says(text);
    exec(&["-t", "-d", "--console-socket", "/no/such"])
        .exits(255)
        .says("dial unix /no/such: connect: no such file or directory");
}

#[test]
fn a_terminal_of_a_user_without_rights() {
    let mut b = with_terminal("echo fine >/dev/tty; echo fine too >/dev/console; exec sleep 1000");
    b.config["process"]["user"] = json!({ "uid": 1000, "gid": 1000 });
    b.config["process"]["capabilities"] = json!({});
    let socket = Socket::new(b.path().join("console"));
    b.brig("create").arg("--console-socket").arg(&socket.path).arg(&b.id).detached().ok();
    let mut pty = Pty::from_master(socket.receive().fds.remove(0));
    b.brig("start").arg(&b.id).ok();
    pty.expect("fine too");
}

#[test]
fn the_program_has_no_other_descriptors_with_a_terminal() {
    since_runc((1, 2), "no descriptor of the socket in the process", || {
        let b = with_terminal("ls /proc/self/fd; echo done; exec sleep 1000");
        let socket = Socket::new(b.path().join("console"));
        b.brig("run").arg("-d").arg("--console-socket").arg(&socket.path).arg(&b.id).detached().ok();
        let mut pty = Pty::from_master(socket.receive().fds.remove(0));
        pty.expect("done");
        let fds: Vec<&str> = pty.seen.split_whitespace().take_while(|word| *word != "done").collect();
        assert_eq!(fds, ["0", "1", "2", "3"]);
    });
}
