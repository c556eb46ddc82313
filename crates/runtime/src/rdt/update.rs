//! `update --l3-cache-schema` and `--mem-bw-schema`.

use brig_plan::IntelRdtSupport;
use brig_spec::IntelRdt;

use super::{Groups, support};
use crate::error::{Doing, Error, Result};

/// Other limits for a class.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// `--l3-cache-schema`.
    pub l3_cache_schema: Option<String>,
    /// `--mem-bw-schema`.
    pub mem_bw_schema: Option<String>,
}

impl Changes {
    /// Whether there is nothing to change.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the host, and the container with those groups, can have such limits.
    fn check<'a>(&self, groups: Option<&'a Groups>, support: IntelRdtSupport) -> Result<&'a Groups> {
        if self.l3_cache_schema.is_some() && !support.l3_cache {
            return Err(Error::host("Intel RDT/CAT: l3 cache schema is not enabled"));
        }
        if self.mem_bw_schema.is_some() && !support.memory_bandwidth {
            return Err(Error::host("Intel RDT/MBA: memory bandwidth schema is not enabled"));
        }
        groups.ok_or_else(|| {
            Error::state("updating a non-existent Intel RDT configuration is not supported")
                .hint("the container was created without linux.intelRdt")
        })
    }
}

/// Limits that were changed, and how they were before.
#[derive(Debug)]
pub(crate) struct Changed<'a> {
    groups: &'a Groups,
    before: String,
}

/// Changes the limits of a container's class: all lines, or none.
///
/// # Errors
///
/// The host or the container has no such limits; the kernel's, with what it says in `info/last_cmd_status`.
pub(crate) fn change<'a>(groups: Option<&'a Groups>, changes: &Changes) -> Result<Option<Changed<'a>>> {
    if changes.is_empty() {
        return Ok(None);
    }
    let groups = changes.check(groups, support().unwrap_or_default())?;
    groups.change(changes).map(Some)
}

impl Groups {
    fn change(&self, changes: &Changes) -> Result<Changed<'_>> {
        let file = self.class.join("schemata");
        let before = std::fs::read_to_string(&file)
            .map_err(|e| Error::from(crate::error::io_error("read", &file, &e)).context("linux.intelRdt"))?;
        let given = IntelRdt {
            l3_cache_schema: changes.l3_cache_schema.clone().unwrap_or_default(),
            mem_bw_schema: changes.mem_bw_schema.clone().unwrap_or_default(),
            ..IntelRdt::default()
        };
        let text = super::lines(&given).iter().fold(String::new(), |text, line| text + line + "\n");
        self.write(&file, &text)?;
        Ok(Changed { groups: self, before })
    }
}

impl Changed<'_> {
    /// Puts the limits back.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub fn undo(self) -> Result<()> {
        let text = self.before.lines().fold(String::new(), |text, line| text + line.trim() + "\n");
        let file = self.groups.class.join("schemata");
        self.groups.write(&file, &text).doing(|| "putting the schemata back")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(l3: Option<&str>, bandwidth: Option<&str>) -> Changes {
        Changes { l3_cache_schema: l3.map(str::to_owned), mem_bw_schema: bandwidth.map(str::to_owned) }
    }

    #[test]
    fn what_must_be_there() {
        let none = IntelRdtSupport::default();
        let all = IntelRdtSupport { l3_cache: true, memory_bandwidth: true };
        let groups = Groups::default();
        for (changes, groups, support, text) in [
            (
                changes(Some("L3:0=f"), None),
                Some(&groups),
                none,
                "Intel RDT/CAT: l3 cache schema is not enabled",
            ),
            (
                changes(None, Some("MB:0=50")),
                Some(&groups),
                none,
                "Intel RDT/MBA: memory bandwidth schema is not enabled",
            ),
            (
                changes(Some("L3:0=f"), None),
                None,
                all,
                "updating a non-existent Intel RDT configuration is not supported",
            ),
        ] {
            assert_eq!(changes.check(groups, support).unwrap_err().message(), text);
        }
        assert!(changes(Some("L3:0=f"), Some("MB:0=50")).check(Some(&groups), all).is_ok());
        assert!(change(None, &Changes::default()).unwrap().is_none());
    }

    #[test]
    fn lines_are_written_and_put_back() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("schemata");
        #[allow(clippy::disallowed_methods, reason = "a test")]
        std::fs::write(&file, "    L3:0=fff\n    MB:0=100\n").unwrap();
        let groups = Groups { class: dir.path().to_owned(), own: true, monitoring: None };
        let read = || std::fs::read_to_string(&file).unwrap();
        let changed = groups.change(&changes(Some("L3:0=00f"), Some("MB:0= 50"))).unwrap();
        // Unlike the kernel's, this file keeps what a shorter text does not reach.
        assert!(read().starts_with("L3:0=00f\nMB:0= 50\n"), "{}", read());
        changed.undo().unwrap();
        assert!(read().starts_with("L3:0=fff\nMB:0=100\n"), "{}", read());
        let gone = Groups { class: dir.path().join("gone"), ..groups };
        let error = gone.change(&changes(Some("L3:0=f"), None)).unwrap_err().to_string();
        assert!(error.contains("gone/schemata: no such file or directory"), "{error}");
    }
}
