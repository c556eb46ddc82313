//! The root file system, which is hostile: whoever made the image wrote every name and link in it, and with a shared
//! volume goes on doing so while the container is made.
//!
//! So nothing in it is named by a host path. Paths are resolved within the root to descriptors, by the kernel (openat2) or, where that
//! is refused, name by name; making, mounting, changing happens on those.

mod api;
mod resolve;
mod steps;

pub use api::{MountApi, MountTarget, SetAttrError, attach, mount_id_of, reconfigure};
pub use resolve::{RootDir, file_type};
pub use steps::open_in_proc as open_in_proc_by_steps;
