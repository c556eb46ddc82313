//! The table of a container's processes: ps(1)'s where the host has it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::Command;

use super::table;
use crate::error::{Error, Kind, os_text};
use crate::quote::visible;

/// The lines of ps(1) that are about these processes, with its heading.
///
/// # Errors
///
/// ps fails, or prints no column of pids; there is no ps and options that only it understands.
pub fn by_host(pids: &[i32], options: &[OsString]) -> Result<String, Error> {
    let default = [OsString::from("-ef")];
    let options = if options.is_empty() { &default } else { options };
    #[expect(clippy::disallowed_methods, reason = "a short-lived program of the host, waited for at once")]
    let ran = Command::new("ps").args(options).output();
    let output = match ran {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::NotFound && options == default => return Ok(built_in(pids)),
        Err(error) => {
            let text = os_text(&error);
            return Err(Error::new(Kind::Host, format!("exec: \"ps\": {text}"))
                .with_hint("install procps, or use --format json"));
        }
    };
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let status = output.status.code().unwrap_or(1);
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Error::caller(format!("exit status {status}: {text}{}", said.trim_end())));
    }
    filter(&text, pids)
}

/// Keeps the heading and the lines whose pid is wanted.
fn filter(text: &str, pids: &[i32]) -> Result<String, Error> {
    let wanted: BTreeSet<i32> = pids.iter().copied().collect();
    let mut lines = text.lines();
    let heading = lines.next().unwrap_or_default();
    let column = heading.split_whitespace().position(|name| name == "PID");
    let column = column.ok_or_else(|| Error::caller("couldn't find PID field in ps output"))?;
    let mut kept = format!("{heading}\n");
    for line in lines.filter(|line| !line.trim().is_empty()) {
        let field = line.split_whitespace().nth(column).unwrap_or_default();
        // The column of another table that the options asked for, perhaps.
        let pid: i32 = field
            .parse()
            .map_err(|_| Error::caller(format!("unable to parse pid: invalid syntax: {field:?}")))?;
        if wanted.contains(&pid) {
            kept.push_str(&visible(line));
            kept.push('\n');
        }
    }
    Ok(kept)
}

/// The same columns from `/proc`, as far as they are worth having without ps.
fn built_in(pids: &[i32]) -> String {
    let heading = ["UID", "PID", "PPID", "TIME", "CMD"].map(str::to_owned);
    let rows: Vec<_> = std::iter::once(heading).chain(pids.iter().filter_map(|pid| row(*pid))).collect();
    table::text(&rows)
}

fn row(pid: i32) -> Option<[String; 5]> {
    let read = |file: &str| std::fs::read(format!("/proc/{pid}/{file}")).ok();
    let status = String::from_utf8_lossy(&read("status")?).into_owned();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next().map(str::to_owned)
    };
    let command = read("cmdline")?;
    let command = String::from_utf8_lossy(&command).replace('\0', " ").trim_end().to_owned();
    let command = if command.is_empty() { format!("[{}]", field("Name:")?) } else { command };
    Some([field("Uid:")?, pid.to_string(), field("PPid:")?, cpu_time(&read("stat")?)?, command])
}

/// User and system time, `hours:minutes:seconds`.
fn cpu_time(stat: &[u8]) -> Option<String> {
    /// USER_HZ, which is the same on all architectures that there are.
    const TICKS: u64 = 100;
    let text = String::from_utf8_lossy(stat);
    let fields = text.rsplit_once(')')?.1;
    let mut times = fields.split_whitespace().skip(11).map_while(|field| field.parse::<u64>().ok());
    let seconds = (times.next()? + times.next()?) / TICKS;
    Some(format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60))
}

#[cfg(test)]
mod tests {
    use super::{built_in, filter};

    #[test]
    fn lines_are_picked_by_the_column_of_pids() {
        let text = "UID   PID CMD\nroot   12 sh -c 13\nroot   13 x\n";
        assert_eq!(filter(text, &[13]).unwrap(), "UID   PID CMD\nroot   13 x\n");
        assert_eq!(filter("A B\n1 2\n", &[1]).unwrap_err().message, "couldn't find PID field in ps output");
        assert!(filter("PID\nx\n", &[1]).unwrap_err().message.starts_with("unable to parse pid"));
    }

    #[test]
    fn a_table_is_there_without_ps() {
        let own = i32::try_from(std::process::id()).unwrap();
        let text = built_in(&[own, i32::MAX]);
        assert_eq!(text.lines().count(), 2);
        assert!(text.lines().nth(1).unwrap().contains(&own.to_string()));
    }
}
