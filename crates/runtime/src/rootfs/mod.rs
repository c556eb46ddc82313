//! The root file system, which is hostile: whoever made the image wrote every name and link in it, and with a shared
//! volume goes on doing so while the container is made.
//!
//! So nothing in it is named by a host path. Paths are resolved by the kernel within the root (`pathrs`, openat2) to
//! descriptors; making, mounting, changing happens on those.

mod api;
mod resolve;

pub use api::{MountApi, MountTarget, SetAttrError, attach, mount_id_of, reconfigure};
pub use resolve::{RootDir, file_type};
