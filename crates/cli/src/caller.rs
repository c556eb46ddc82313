//! Who calls, as far as defaults depend on it.

use std::ffi::OsStr;
use std::fs;

/// The calling process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// Effective user id.
    pub euid: u32,
    /// It lives in a user namespace other than the host's.
    pub in_user_namespace: bool,
}

impl Caller {
    /// This process.
    pub fn this_process() -> Self {
        Self {
            euid: rustix::process::geteuid().as_raw(),
            in_user_namespace: fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| is_partial(&map)),
        }
    }

    /// Whether `$XDG_RUNTIME_DIR` is this caller's own. For the host's root it is not, since sudo may have left
    /// another user's; root of a user namespace counts as a user unless `$USER` says otherwise.
    pub fn uses_xdg_runtime_dir(self, user: Option<&OsStr>) -> bool {
        self.euid != 0 || (self.in_user_namespace && user.is_none_or(|user| user != "root"))
    }
}

/// Whether a `uid_map` is anything but that of the first user namespace, which maps all ids to themselves.
fn is_partial(map: &str) -> bool {
    let mut fields = map.split_ascii_whitespace();
    [Some("0"), Some("0"), Some("4294967295")] != [fields.next(), fields.next(), fields.next()]
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::{Caller, is_partial};

    #[test]
    fn user_namespaces_have_partial_maps() {
        assert!(!is_partial("         0          0 4294967295\n"));
        assert!(is_partial("         0       1000          1\n         1     100000      65536\n"));
        assert!(is_partial(""));
    }

    #[test]
    fn whose_runtime_directory() {
        let caller = |euid, in_user_namespace| Caller { euid, in_user_namespace };
        let root = Some(OsStr::new("root"));
        let me = Some(OsStr::new("me"));
        assert!(!caller(0, false).uses_xdg_runtime_dir(me));
        assert!(!caller(0, true).uses_xdg_runtime_dir(root));
        assert!(caller(0, true).uses_xdg_runtime_dir(me));
        assert!(caller(0, true).uses_xdg_runtime_dir(None));
        assert!(caller(1000, false).uses_xdg_runtime_dir(root));
    }
}
