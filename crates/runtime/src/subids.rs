//! Subordinate ids of the caller: /etc/subuid and /etc/subgid.

use std::path::Path;

use brig_plan::Subordinate;

/// What they grant to the user, by name or by number.
pub fn of_caller(euid: u32) -> Subordinate {
    let read = |path: &str| std::fs::read_to_string(Path::new(path)).unwrap_or_default();
    let name = user_name(&read("/etc/passwd"), euid);
    Subordinate {
        egid: rustix::process::getegid().as_raw(),
        uid: ranges(&read("/etc/subuid"), name.as_deref(), euid),
        gid: ranges(&read("/etc/subgid"), name.as_deref(), euid),
    }
}

fn user_name(passwd: &str, uid: u32) -> Option<String> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

/// Lines `user:first:count`, subuid(5); those that make no sense are passed over.
fn ranges(text: &str, name: Option<&str>, uid: u32) -> Vec<(u32, u32)> {
    let number = uid.to_string();
    text.lines()
        .filter_map(|line| {
            let mut fields = line.trim().split(':');
            let user = fields.next()?;
            let (first, count): (u32, u32) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
            let granted = Some(user) == name || user == number;
            (granted && count > 0 && first.checked_add(count).is_some()).then_some((first, count))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_found_by_name_and_by_number() {
        let text = "ann:100000:65536\nbob:200000:1000\n1000:300000:5\nann:x:1\n\n";
        assert_eq!(ranges(text, Some("ann"), 1000), [(100_000, 65536), (300_000, 5)]);
        assert_eq!(ranges(text, None, 7), []);
    }

    #[test]
    fn a_user_has_a_name() {
        let passwd = "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n";
        assert_eq!(user_name(passwd, 1000).as_deref(), Some("ann"));
        assert_eq!(user_name(passwd, 1), None);
    }
}
