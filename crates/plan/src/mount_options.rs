//! Mount options, see mount(8) and the specification's "Linux mount options".

use crate::{
    MOUNT_ATTR__ATIME, MOUNT_ATTR_NOATIME, MOUNT_ATTR_NODEV, MOUNT_ATTR_NODIRATIME, MOUNT_ATTR_NOEXEC,
    MOUNT_ATTR_NOSUID, MOUNT_ATTR_NOSYMFOLLOW, MOUNT_ATTR_RDONLY, MOUNT_ATTR_RELATIME,
    MOUNT_ATTR_STRICTATIME, MountAttrs, Propagation, PropagationKind,
};

/// The options that mean something here, sorted, as `features` lists them: all others go to the file system.
/// `idmap` and `ridmap`, which are understood too, have a member of their own there.
#[rustfmt::skip]
pub const MOUNT_OPTIONS: [&str; 60] = [
    "async", "atime", "bind", "defaults", "dev", "diratime", "dirsync", "exec", "iversion", "lazytime", "loud", "mand",
    "noatime", "nodev", "nodiratime", "noexec", "noiversion", "nolazytime", "nomand", "norelatime", "nostrictatime",
    "nosuid", "nosymfollow", "private", "ratime", "rbind", "rdev", "rdiratime", "relatime", "remount", "rexec",
    "rnoatime", "rnodev", "rnodiratime", "rnoexec", "rnorelatime", "rnostrictatime", "rnosuid", "rnosymfollow", "ro",
    "rprivate", "rrelatime", "rro", "rrw", "rshared", "rslave", "rstrictatime", "rsuid", "rsymfollow", "runbindable",
    "rw", "shared", "silent", "slave", "strictatime", "suid", "symfollow", "sync", "tmpcopyup", "unbindable",
];

/// Attributes of mounts: what sets one, what clears it, its bit. With an `r` in front, the same for all mounts below.
const ATTRIBUTES: [(&str, &str, u64); 6] = [
    ("ro", "rw", MOUNT_ATTR_RDONLY),
    ("nosuid", "suid", MOUNT_ATTR_NOSUID),
    ("nodev", "dev", MOUNT_ATTR_NODEV),
    ("noexec", "exec", MOUNT_ATTR_NOEXEC),
    ("nodiratime", "diratime", MOUNT_ATTR_NODIRATIME),
    ("nosymfollow", "symfollow", MOUNT_ATTR_NOSYMFOLLOW),
];

/// How access times are kept: one of three, each with the option that goes back to the kernel's default.
const ACCESS_TIMES: [(&str, &str, u64); 3] = [
    ("noatime", "atime", MOUNT_ATTR_NOATIME),
    ("relatime", "norelatime", MOUNT_ATTR_RELATIME),
    ("strictatime", "nostrictatime", MOUNT_ATTR_STRICTATIME),
];

/// Flags of superblocks, and what takes them back.
const SUPERBLOCK: [(&str, Option<&str>); 4] =
    [("dirsync", None), ("lazytime", Some("nolazytime")), ("mand", Some("nomand")), ("sync", Some("async"))];

/// The options of one mount, told apart. A later one undoes an earlier one that it contradicts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Parsed {
    /// `bind` (false) or `rbind` (true).
    pub(crate) bind: Option<bool>,
    pub(crate) remount: bool,
    pub(crate) attrs: MountAttrs,
    /// There is an option about `attrs`.
    pub(crate) exact: bool,
    pub(crate) recursive_attrs: MountAttrs,
    /// Which of `SUPERBLOCK` are set, and which cleared.
    superblock: [Option<bool>; SUPERBLOCK.len()],
    /// In the order given: each is a step of its own.
    pub(crate) propagation: Vec<Propagation>,
    /// `idmap` (false) or `ridmap` (true).
    pub(crate) idmap: Option<bool>,
    pub(crate) copy_up: bool,
    pub(crate) iversion: bool,
    /// What goes to the file system.
    pub(crate) data: Vec<(String, Option<String>)>,
}

impl Parsed {
    /// Parameters that set flags of the superblock.
    pub(crate) fn set_flags(&self) -> impl Iterator<Item = &'static str> {
        self.flags(true).map(|(name, _)| name)
    }

    /// Parameters that clear flags, which have a meaning only for a superblock that exists.
    pub(crate) fn clear_flags(&self) -> impl Iterator<Item = &'static str> {
        self.flags(false).filter_map(|(_, opposite)| opposite)
    }

    fn flags(&self, on: bool) -> impl Iterator<Item = (&'static str, Option<&'static str>)> {
        let flags = SUPERBLOCK.iter().zip(self.superblock);
        flags.filter(move |(_, set)| *set == Some(on)).map(|(names, _)| *names)
    }
}

pub(crate) fn parse(options: &[String]) -> Parsed {
    let mut parsed = Parsed::default();
    for option in options {
        parse_one(option, &mut parsed);
    }
    // As with mount(8): who asks for one kind of access time says that the other kind is to be the default.
    if parsed.attrs.set & MOUNT_ATTR_NODIRATIME != 0 {
        parsed.attrs.clear |= MOUNT_ATTR__ATIME;
    }
    parsed
}

fn parse_one(option: &str, parsed: &mut Parsed) {
    match option {
        // "bind" after "rbind" does not take the recursion back: the flags of mount(2) only add up.
        "bind" => parsed.bind = parsed.bind.or(Some(false)),
        "rbind" => parsed.bind = Some(true),
        "remount" => parsed.remount = true,
        "idmap" => parsed.idmap = Some(false),
        "ridmap" => parsed.idmap = Some(true),
        "tmpcopyup" => parsed.copy_up = true,
        "iversion" => parsed.iversion = true,
        "noiversion" => parsed.iversion = false,
        // No flag belongs to the first; the others only quieten the kernel's log, and the mount API has no word for them.
        "defaults" | "silent" | "loud" | "" => {}
        _ => {
            if let Some(propagation) = propagation(option) {
                parsed.propagation.push(propagation);
                return;
            }
            if access_time(option, &mut parsed.attrs) || flag(option, &mut parsed.attrs) {
                parsed.exact = true;
                return;
            }
            let recursive = &mut parsed.recursive_attrs;
            let known = option
                .strip_prefix('r')
                .is_some_and(|option| flag(option, recursive) || recursive_access_time(option, recursive))
                || superblock(option, &mut parsed.superblock);
            if !known {
                split_data(option, &mut parsed.data);
            }
        }
    }
}

/// The propagation type of this name.
pub(crate) fn propagation(name: &str) -> Option<Propagation> {
    let kind = |name| {
        Some(match name {
            "shared" => PropagationKind::Shared,
            "slave" => PropagationKind::Slave,
            "private" => PropagationKind::Private,
            "unbindable" => PropagationKind::Unbindable,
            _ => return None,
        })
    };
    match kind(name) {
        Some(kind) => Some(Propagation { kind, recursive: false }),
        None => Some(Propagation { kind: kind(name.strip_prefix('r')?)?, recursive: true }),
    }
}

fn flag(option: &str, attrs: &mut MountAttrs) -> bool {
    for (set, clear, bit) in ATTRIBUTES {
        if option == set {
            attrs.set |= bit;
            attrs.clear &= !bit;
        } else if option == clear {
            attrs.set &= !bit;
            attrs.clear |= bit;
        } else {
            continue;
        }
        return true;
    }
    false
}

/// As mount(8) has it, an option that takes a choice back has no effect where there is none: a bind mount then keeps the
/// setting of its source.
fn access_time(option: &str, attrs: &mut MountAttrs) -> bool {
    if option == "diratime" {
        attrs.set &= !MOUNT_ATTR_NODIRATIME;
        return true;
    }
    for (choose, take_back, value) in ACCESS_TIMES {
        if option == choose {
            choose_access_time(value, attrs);
        } else if option != take_back {
            continue;
        } else if attrs.clear & MOUNT_ATTR__ATIME != 0 && attrs.set & MOUNT_ATTR__ATIME == value {
            attrs.set &= !MOUNT_ATTR__ATIME;
            attrs.clear &= !MOUNT_ATTR__ATIME;
        }
        return true;
    }
    false
}

/// The recursive options came with mount_setattr(2), where clearing is a change too.
fn recursive_access_time(option: &str, attrs: &mut MountAttrs) -> bool {
    for (choose, take_back, value) in ACCESS_TIMES {
        let chosen = attrs.clear & MOUNT_ATTR__ATIME != 0;
        if option == choose {
            choose_access_time(value, attrs);
        } else if option != take_back {
            continue;
        } else if !chosen || attrs.set & MOUNT_ATTR__ATIME == value {
            choose_access_time(MOUNT_ATTR_RELATIME, attrs);
        }
        return true;
    }
    false
}

/// The kernel wants all bits cleared to set one, see mount_setattr(2).
fn choose_access_time(value: u64, attrs: &mut MountAttrs) {
    attrs.set = attrs.set & !MOUNT_ATTR__ATIME | value;
    attrs.clear |= MOUNT_ATTR__ATIME;
}

fn superblock(option: &str, flags: &mut [Option<bool>; SUPERBLOCK.len()]) -> bool {
    for ((set, clear), flag) in SUPERBLOCK.iter().zip(flags) {
        if option == *set || Some(option) == *clear {
            *flag = Some(option == *set);
            return true;
        }
    }
    false
}

/// Takes what mount(2) would be given as text apart, as the kernel does: at commas, unless they are within quotes or
/// follow a backslash (overlay's layers). Quotes around the value of a security context are not part of it.
fn split_data(option: &str, data: &mut Vec<(String, Option<String>)>) {
    let (mut quoted, mut escaped) = (false, false);
    let parts = option.split(|c| {
        let separates = c == ',' && !quoted && !escaped;
        quoted ^= c == '"';
        escaped = c == '\\' && !escaped;
        separates
    });
    for part in parts.filter(|part| !part.is_empty()) {
        data.push(match part.split_once('=') {
            Some((key @ ("context" | "fscontext" | "defcontext" | "rootcontext"), value)) => {
                (key.to_owned(), Some(value.replace('"', "")))
            }
            Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
            None => (part.to_owned(), None),
        });
    }
}

#[cfg(test)]
mod tests;
