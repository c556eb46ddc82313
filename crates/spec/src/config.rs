//! `config.json` itself and the parts that are not particular to Linux.

use std::collections::BTreeMap;

use crate::linux::IdMapping;
use crate::linux::Linux;
use crate::process::Process;
use crate::read::{ReadError, Survey, UnknownKey, from_slice, survey};

object! {
    /// A container's configuration: the contents of `config.json`.
    pub struct Spec {
        /// The version of the specification that the bundle follows.
        pub oci_version: String = "ociVersion" always,
        /// The container's process; may be absent until `start`.
        pub process: Option<Process> = "process",
        /// The root file system.
        pub root: Option<Root> = "root",
        /// Host name in the container's UTS namespace.
        pub hostname: String = "hostname",
        /// NIS domain name in the container's UTS namespace.
        pub domainname: String = "domainname",
        /// Mounts on top of the root, in the order in which they are made.
        pub mounts: Vec<Mount> = "mounts",
        /// Programs to run at points of the life cycle.
        pub hooks: Option<Hooks> = "hooks",
        /// Free-form metadata.
        pub annotations: BTreeMap<String, String> = "annotations",
        /// What is particular to Linux.
        pub linux: Option<Linux> = "linux",
    }
    ignores "solaris", "windows", "vm", "zos", "freebsd";

    /// `root`.
    pub struct Root {
        /// A directory, absolute or relative to the bundle.
        pub path: String = "path" always,
        /// The container sees it read-only.
        pub readonly: bool = "readonly",
    }

    /// One of `mounts`.
    pub struct Mount {
        /// Where in the container.
        pub destination: String = "destination" always,
        /// File system type; of no meaning for bind mounts.
        pub kind: String = "type",
        /// A device, a path for bind mounts, or any name for virtual file systems.
        pub source: String = "source",
        /// fstab(5)-style options.
        pub options: Vec<String> = "options",
        /// User ids of an id-mapped mount.
        pub uid_mappings: Vec<IdMapping> = "uidMappings",
        /// Group ids of an id-mapped mount.
        pub gid_mappings: Vec<IdMapping> = "gidMappings",
    }

    /// `hooks`: programs run at points of the life cycle, each list in its order.
    pub struct Hooks {
        /// Deprecated: as `createRuntime`, and before it.
        pub prestart: Vec<Hook> = "prestart",
        /// Before pivot_root, in the runtime's namespaces.
        pub create_runtime: Vec<Hook> = "createRuntime",
        /// Before pivot_root, in the container's namespaces.
        pub create_container: Vec<Hook> = "createContainer",
        /// At `start`, before the process is executed, in the container.
        pub start_container: Vec<Hook> = "startContainer",
        /// After the process was executed, in the runtime's namespaces.
        pub poststart: Vec<Hook> = "poststart",
        /// After the container was deleted, in the runtime's namespaces.
        pub poststop: Vec<Hook> = "poststop",
    }

    /// One program.
    pub struct Hook {
        /// Absolute path.
        pub path: String = "path" always,
        /// argv, `argv[0]` included.
        pub args: Vec<String> = "args",
        /// Environment. An absent list and an empty one differ: with the first, the runtime's own is passed on.
        pub env: Option<Vec<String>> = "env",
        /// Seconds until it is killed.
        pub timeout: Option<i64> = "timeout",
    }
}

impl Spec {
    /// Reads `config.json`.
    ///
    /// # Errors
    ///
    /// Everything of [`ReadError`].
    pub fn from_slice(bytes: &[u8]) -> Result<(Self, Vec<UnknownKey>), ReadError> {
        let (spec, unknown) = from_slice::<Option<Self>>(bytes)?;
        Ok((spec.ok_or(ReadError::Null)?, unknown))
    }

    /// Reads as much of `config.json` as can be read.
    ///
    /// # Errors
    ///
    /// [`ReadError::Syntax`] and [`ReadError::Null`].
    pub fn survey(bytes: &[u8]) -> Result<Survey<Self>, ReadError> {
        let Survey { value, unknown, misfits } = survey::<Option<Self>>(bytes)?;
        let value = match value {
            Some(value) => value,
            None if misfits.is_empty() => return Err(ReadError::Null),
            None => Self::default(),
        };
        Ok(Survey { value, unknown, misfits })
    }
}
