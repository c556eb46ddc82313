//! Clears up behind a test that was killed: a process of its own, to which each bundle is told, and which begins when the pipe to it is
//! closed, as the kernel does it for whoever is killed.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, OnceLock};

/// What is there no more was cleared up by the test itself. Nothing is removed through a mount.
const SCRIPT: &str = r#"
list=$(cat)
tab=$(printf '\t')
printf '%s\n' "$list" | while IFS=$tab read -r runtime root id dir; do
    [ -d "$dir" ] || continue
    "$runtime" --root "$root" delete --force "$id"
    grep -qF " $dir/" /proc/self/mountinfo || rm -rf "$dir"
done
"#;

static CARETAKER: OnceLock<(i32, Mutex<ChildStdin>)> = OnceLock::new();

/// Its pid once there is one: a child that is there until the tests end.
pub fn pid() -> Option<i32> {
    CARETAKER.get().map(|(pid, _)| *pid)
}

/// Tells it of a container: which runtime, root and id, and the directory that goes with it.
pub fn tell(runtime: &Path, root: &Path, id: &str, dir: &Path) {
    let (_, pipe) = CARETAKER.get_or_init(start);
    let words = [runtime.as_os_str(), root.as_os_str(), OsStr::new(id), dir.as_os_str()];
    let line = words.map(|word| word.to_string_lossy().into_owned()).join("\t");
    // A test goes on without it.
    let _ = pipe.lock().map(|mut pipe| pipe.write_all(format!("{line}\n").as_bytes()));
}

#[allow(clippy::zombie_processes, reason = "it outlives whoever starts it")]
fn start() -> (i32, Mutex<ChildStdin>) {
    let mut command = Command::new("sh");
    command.args(["-c", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // What ends the tests by their process group leaves it alone.
    command.current_dir("/").process_group(0);
    let mut child = command.spawn().unwrap();
    (i32::try_from(child.id()).unwrap(), Mutex::new(child.stdin.take().unwrap()))
}
