//! A bus with a systemd on it that does as it is told: for tests of what becomes of a runtime whose systemd hangs, goes away or
//! talks nonsense. The encoding is our own, so that two agree on it.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// No answer any more.
    Silence,
    /// It is done, and no answer any more.
    DoneInSilence,
    /// The connection is closed, then and whenever a message comes.
    Close,
    /// The connection is closed once.
    CloseOnce,
    /// It is done, and the connection is closed once.
    DoneAndCloseOnce,
    /// Bytes that are no message.
    Garbage,
    /// The beginning of a message of 4 GB.
    Huge,
    /// Half an answer, then the end.
    Cut,
    /// An answer to another question, then silence.
    WrongAnswer,
    /// The job fails.
    JobFails,
    /// Everything is refused.
    Refuse,
}

/// When the fault begins: at the nth message since the file `armed` is there. Those of authentication count as one.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub fault: Fault,
    pub at: usize,
}

#[derive(Debug, Default)]
struct Seen {
    messages: Vec<String>,
    armed: usize,
}

/// The bus.
#[derive(Debug)]
pub struct FakeBus {
    dir: PathBuf,
    seen: Arc<Mutex<Seen>>,
}

impl FakeBus {
    /// Listens at `bus` in `dir`, where `run/transient` stands for systemd's directory of units. Slices are made in `cgroup`.
    pub fn start(dir: &Path, cgroup: &Path, plan: Option<Plan>) -> Self {
        fs::create_dir_all(dir.join("run/transient")).unwrap();
        fs::create_dir_all(dir.join("run/system")).unwrap();
        let listener = UnixListener::bind(dir.join("bus")).unwrap();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let server = Server { dir: dir.to_owned(), cgroup: cgroup.to_owned(), plan, seen: Arc::clone(&seen) };
        // It ends with the test program, like those that serve its connections.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = server.clone();
                std::thread::spawn(move || server.serve(stream));
            }
        });
        Self { dir: dir.to_owned(), seen }
    }

    /// Where it is, as `DBUS_SYSTEM_BUS_ADDRESS` has it.
    pub fn address(&self) -> String {
        format!("unix:path={}", self.dir.join("bus").display())
    }

    /// The messages that came, by member.
    pub fn messages(&self) -> Vec<String> {
        self.seen.lock().unwrap().messages.clone()
    }
}

#[derive(Debug, Clone)]
struct Server {
    dir: PathBuf,
    cgroup: PathBuf,
    plan: Option<Plan>,
    seen: Arc<Mutex<Seen>>,
}

/// What is left of the connection after a message.
type Goes = Option<()>;

impl Server {
    fn serve(&self, mut stream: UnixStream) -> Goes {
        stream.set_read_timeout(Some(Duration::from_secs(60))).ok()?;
        self.authenticate(&mut stream)?;
        loop {
            let call = Call::read(&mut stream)?;
            let fault = self.see(&call.member);
            self.answer(&mut stream, &call, fault)?;
        }
    }

    /// Notes a message, and says what is to go wrong with it.
    fn see(&self, member: &str) -> Option<Fault> {
        let mut seen = self.seen.lock().unwrap();
        seen.messages.push(member.to_owned());
        let plan = self.plan?;
        if !self.dir.join("armed").exists() {
            return None;
        }
        seen.armed += 1;
        let once = matches!(plan.fault, Fault::CloseOnce | Fault::DoneAndCloseOnce);
        let strikes = if once { seen.armed == plan.at } else { seen.armed >= plan.at };
        strikes.then_some(plan.fault)
    }

    fn authenticate(&self, stream: &mut UnixStream) -> Goes {
        let mut line = Vec::new();
        let mut fault = None;
        loop {
            let mut byte = [0];
            stream.read_exact(&mut byte).ok()?;
            line.push(byte[0]);
            let Some(text) = line.strip_suffix(b"\r\n") else { continue };
            let text = String::from_utf8_lossy(text).trim_start_matches('\0').to_owned();
            line.clear();
            match text.as_str() {
                "AUTH EXTERNAL" => {
                    fault = self.see("AUTH");
                    if let Some(fault) = fault {
                        self.fail(stream, fault, &[])?;
                    }
                    stream.write_all(b"DATA\r\n").ok()?;
                }
                "DATA" if fault == Some(Fault::Refuse) => stream.write_all(b"REJECTED EXTERNAL\r\n").ok()?,
                "DATA" => stream.write_all(b"OK 0123456789abcdef0123456789abcdef\r\n").ok()?,
                "BEGIN" => return Some(()),
                other => panic!("{other:?} in authentication"),
            }
        }
    }

    /// Does what a fault does to the connection instead of, or before, an answer. `Some` when things go on.
    fn fail(&self, stream: &mut UnixStream, fault: Fault, answer: &[u8]) -> Goes {
        match fault {
            Fault::Silence | Fault::DoneInSilence => wait_for_hangup(stream),
            Fault::Close | Fault::CloseOnce | Fault::DoneAndCloseOnce => None,
            Fault::Garbage => {
                let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\nthis is no bus\r\n");
                wait_for_hangup(stream)
            }
            Fault::Huge => {
                let _ = stream.write_all(b"l\x02\x01\x01\xff\xff\xff\xff\x01\0\0\0\x08\0\0\0");
                let _ = stream.write_all(&[0; 65536]);
                wait_for_hangup(stream)
            }
            Fault::Cut => {
                let _ = stream.write_all(answer.get(..answer.len() / 2).unwrap_or_default());
                None
            }
            Fault::WrongAnswer => {
                let _ =
                    stream.write_all(&message(RETURN, &[field(5, b'u', &77_777_u32.to_le_bytes())], "", &[]));
                wait_for_hangup(stream)
            }
            Fault::JobFails | Fault::Refuse => Some(()),
        }
    }

    fn answer(&self, stream: &mut UnixStream, call: &Call, fault: Option<Fault>) -> Goes {
        let answers = match fault {
            Some(Fault::Silence | Fault::Close | Fault::CloseOnce) => Vec::new(),
            Some(Fault::Refuse) => vec![call.error("org.freedesktop.DBus.Error.AccessDenied", "not you")],
            fault => self.act(call, fault == Some(Fault::JobFails)),
        };
        if let Some(fault) = fault {
            self.fail(stream, fault, &answers.concat())?;
        }
        if call.wants_answer {
            stream.write_all(&answers.concat()).ok()?;
        }
        Some(())
    }

    /// Does what is asked.
    fn act(&self, call: &Call, job_fails: bool) -> Vec<Vec<u8>> {
        let unit = call.strings.first().cloned().unwrap_or_default();
        let file = self.dir.join("run/transient").join(&unit);
        let job = "/org/freedesktop/systemd1/job/7";
        let result = if job_fails { "failed" } else { "done" };
        let removed =
            signal("JobRemoved", &[Arg::Number(7), Arg::Path(job), Arg::Text(&unit), Arg::Text(result)]);
        match call.member.as_str() {
            "Hello" => {
                vec![call.returns(&[Arg::Text(":1.42")]), signal("NameAcquired", &[Arg::Text(":1.42")])]
            }
            "StartTransientUnit" if file.exists() => {
                vec![call.error("org.freedesktop.systemd1.UnitExists", "it was loaded already")]
            }
            "StartTransientUnit" => {
                if !job_fails {
                    fs::write(&file, "").unwrap();
                }
                // Jobs of others, and of this unit before, are told of too.
                let other = signal(
                    "JobRemoved",
                    &[
                        Arg::Number(6),
                        Arg::Path("/org/freedesktop/systemd1/job/6"),
                        Arg::Text(&unit),
                        Arg::Text("failed"),
                    ],
                );
                vec![other, call.returns(&[Arg::Path(job)]), removed]
            }
            "StartUnit" => {
                if !job_fails {
                    let name = unit.trim_end_matches(".slice");
                    let mut path = self.cgroup.clone();
                    for (end, _) in name.match_indices('-').chain([(name.len(), "")]) {
                        path.push(format!("{}.slice", &name[..end]));
                    }
                    fs::create_dir_all(path).unwrap();
                }
                vec![call.returns(&[Arg::Path(job)]), removed]
            }
            "StopUnit" => match fs::remove_file(&file) {
                Ok(()) => vec![call.returns(&[Arg::Path(job)]), removed],
                Err(_) => vec![call.error("org.freedesktop.systemd1.NoSuchUnit", "it is not loaded")],
            },
            "Get" => {
                // The unit's object is not decoded: there is one unit.
                let known = fs::read_dir(self.dir.join("run/transient")).unwrap().next().is_some();
                vec![call.returns(&[Arg::Variant(if known { "active" } else { "inactive" })])]
            }
            "AddMatch" | "ResetFailedUnit" | "SetUnitProperties" | "Ping" => vec![call.returns(&[])],
            other => panic!("{other} is not what a runtime should call"),
        }
    }
}

/// Waits until the other side has enough of it.
fn wait_for_hangup(stream: &mut UnixStream) -> Goes {
    let mut buffer = [0; 4096];
    while stream.read(&mut buffer).is_ok_and(|n| n > 0) {}
    None
}

/// A method call that came.
#[derive(Debug)]
struct Call {
    serial: u32,
    member: String,
    wants_answer: bool,
    /// The strings that its arguments begin with.
    strings: Vec<String>,
}

impl Call {
    fn read(stream: &mut UnixStream) -> Option<Self> {
        let mut head = [0; 16];
        stream.read_exact(&mut head).ok()?;
        assert_eq!((head[0], head[1], head[3]), (b'l', 1, 1), "no method call: {head:?}");
        let number = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap());
        let (body, fields) = (number(4) as usize, number(12) as usize);
        let mut rest = vec![0; fields.next_multiple_of(8) + body];
        stream.read_exact(&mut rest).ok()?;
        let mut call = Self {
            serial: number(8),
            member: String::new(),
            wants_answer: head[2] & 1 == 0,
            strings: Vec::new(),
        };
        let mut signature = String::new();
        let mut at = 0;
        while at < fields {
            // code, signature of one letter, value
            let (code, kind) = (rest[at], rest[at + 2]);
            at += 4;
            let length = if kind == b'g' {
                rest[at] as usize
            } else {
                u32::from_le_bytes(rest[at..at + 4].try_into().unwrap()) as usize
            };
            at += if kind == b'g' { 1 } else { 4 };
            let text = String::from_utf8(rest[at..at + length].to_vec()).unwrap();
            at = (at + length + 1).next_multiple_of(8);
            match code {
                3 => call.member = text,
                8 => signature = text,
                _ => {}
            }
        }
        let body = &rest[fields.next_multiple_of(8)..];
        let mut at = 0;
        for _ in signature.chars().take_while(|&letter| letter == 's') {
            let length = u32::from_le_bytes(body[at..at + 4].try_into().unwrap()) as usize;
            call.strings.push(String::from_utf8(body[at + 4..at + 4 + length].to_vec()).unwrap());
            at = (at + 4 + length + 1).next_multiple_of(4);
        }
        Some(call)
    }

    fn returns(&self, args: &[Arg<'_>]) -> Vec<u8> {
        let (signature, body) = encode(args);
        message(RETURN, &[field(5, b'u', &self.serial.to_le_bytes())], &signature, &body)
    }

    fn error(&self, name: &str, text: &str) -> Vec<u8> {
        let (signature, body) = encode(&[Arg::Text(text)]);
        let fields = [field(4, b's', &string(name)), field(5, b'u', &self.serial.to_le_bytes())];
        message(ERROR, &fields, &signature, &body)
    }
}

const RETURN: u8 = 2;
const ERROR: u8 = 3;
const SIGNAL: u8 = 4;

enum Arg<'a> {
    Number(u32),
    Path(&'a str),
    Text(&'a str),
    Variant(&'a str),
}

fn signal(member: &str, args: &[Arg<'_>]) -> Vec<u8> {
    let (signature, body) = encode(args);
    let interface = "org.freedesktop.systemd1.Manager";
    let path = "/org/freedesktop/systemd1";
    let fields =
        [field(1, b'o', &string(path)), field(2, b's', &string(interface)), field(3, b's', &string(member))];
    message(SIGNAL, &fields, &signature, &body)
}

fn encode(args: &[Arg<'_>]) -> (String, Vec<u8>) {
    let mut signature = String::new();
    let mut body = Vec::new();
    for arg in args {
        body.resize(usize::next_multiple_of(body.len(), 4), 0);
        let (letter, bytes) = match arg {
            Arg::Number(number) => ('u', number.to_le_bytes().to_vec()),
            Arg::Path(path) => ('o', string(path)),
            Arg::Text(text) => ('s', string(text)),
            // Signature of one letter, then the string at the next multiple of four.
            Arg::Variant(text) => ('v', [b"\x01s\0\0".to_vec(), string(text)].concat()),
        };
        signature.push(letter);
        body.extend(bytes);
    }
    (signature, body)
}

fn string(text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap();
    [&length.to_le_bytes()[..], text.as_bytes(), b"\0"].concat()
}

fn field(code: u8, kind: u8, value: &[u8]) -> Vec<u8> {
    [&[code, 1, kind, 0][..], value].concat()
}

fn message(kind: u8, fields: &[Vec<u8>], signature: &str, body: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    let signature_field =
        [&[8, 1, b'g', 0, u8::try_from(signature.len()).unwrap()][..], signature.as_bytes(), b"\0"].concat();
    for field in fields.iter().chain((!signature.is_empty()).then_some(&signature_field)) {
        all.resize(usize::next_multiple_of(all.len(), 8), 0);
        all.extend(field);
    }
    let mut message = vec![b'l', kind, 1, 1];
    for number in [body.len(), 1, all.len()] {
        message.extend(u32::try_from(number).unwrap().to_le_bytes());
    }
    message.extend(all);
    message.resize(message.len().next_multiple_of(8), 0);
    message.extend(body);
    message
}
