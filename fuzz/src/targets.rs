//! The targets.

mod bus;
mod config;
mod devices;
mod kernel;
mod messages;
mod options;
mod seccomp;
mod text;

/// One thing to fuzz.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, and that of its corpus.
    pub name: &'static str,
    /// Panics on a finding.
    pub run: fn(&[u8]),
    /// Inputs to begin with, besides the corpus.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target { name: "config", run: config::config, seeds: config::config_seeds },
    Target { name: "process", run: config::process, seeds: config::process_seeds },
    Target { name: "resources", run: config::resources, seeds: config::resources_seeds },
    Target { name: "record", run: messages::record, seeds: messages::record_seeds },
    Target { name: "options", run: options::options, seeds: options::seeds },
    Target { name: "seccomp", run: seccomp::seccomp, seeds: seccomp::seeds },
    Target { name: "devices", run: devices::devices, seeds: devices::seeds },
    Target { name: "kernel", run: kernel::kernel, seeds: kernel::seeds },
    Target { name: "messages", run: messages::messages, seeds: messages::message_seeds },
    Target { name: "passwd", run: messages::passwd, seeds: messages::passwd_seeds },
    Target { name: "bus", run: bus::bus, seeds: bus::seeds },
    Target { name: "text", run: text::text, seeds: text::seeds },
];
