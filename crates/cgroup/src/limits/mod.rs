//! `linux.resources`: turned into files and values by pure functions, then written.

mod exec;
mod write;

pub mod v1;
pub mod v2;

use brig_spec::Resources;

use crate::cgroup::Cgroup;
use crate::devices;
use crate::error::{Error, Result};
use crate::layout::Mode;
use crate::systemd::Systemd;

pub use write::{Converted, Invalid, Link, Missing, Shape, Skipped, Write};

impl Cgroup {
    /// Limits a cgroup that has just been [made](Cgroup::make), before there are processes in it. Values that a
    /// new cgroup has anyway are not written.
    ///
    /// Returns what could not be honoured, for the caller's log.
    ///
    /// # Errors
    ///
    /// The first limit that was refused, by its JSON path. The cgroup is then good for nothing but to be dropped.
    pub fn apply(&self, resources: &Resources) -> Result<Vec<Skipped>> {
        self.apply_with(resources, exec::Executor::new(self))
    }

    /// As [`Cgroup::apply`], but what there is no cgroup for is among the skipped ones.
    ///
    /// # Errors
    ///
    /// As [`Cgroup::apply`].
    pub fn apply_what_can_be(&self, resources: &Resources) -> Result<Vec<Skipped>> {
        self.apply_with(resources, exec::Executor::forgiving(self))
    }

    fn apply_with(&self, resources: &Resources, mut executor: exec::Executor<'_>) -> Result<Vec<Skipped>> {
        let Converted { writes, mut skipped } = self.convert(resources)?;
        executor.run(&writes)?;
        skipped.extend(executor.into_skipped());
        if !resources.devices.is_empty() {
            match self.set_devices(&resources.devices) {
                Ok(()) => {}
                // Rules that make no sense are an error even for those who could not enforce them.
                Err(error @ Error::Invalid(_)) => return Err(error),
                Err(error) if self.names.rootless => skipped.push(Skipped {
                    source: "linux.resources.devices".to_owned(),
                    why: format!("there is no permission to filter devices: {error}"),
                }),
                Err(error) => return Err(error),
            }
        }
        self.not_fresh();
        Ok(skipped)
    }

    /// Nothing can be said any more about the values of files.
    pub(crate) fn not_fresh(&self) {
        for node in &self.nodes {
            node.fresh.set(false);
        }
    }

    /// Changes the limits of a cgroup in use. Devices are left alone, so that rules which others have added (hooks
    /// for GPUs do) survive. Either all values are changed or none.
    ///
    /// Returns what could not be honoured, for the caller's log.
    ///
    /// # Errors
    ///
    /// The first limit that was refused, by its JSON path, or `checkBeforeUpdate` forbids it; previous values have
    /// been put back, or it is [`Error::NotUndone`].
    pub fn update(&self, resources: &Resources) -> Result<Vec<Skipped>> {
        let Converted { writes, skipped } = self.convert(resources)?;
        self.check_usage(resources)?;
        self.not_fresh();
        exec::Executor::with_undo(self).run_or_undo(&writes, || self.tell_systemd(resources, &writes))?;
        Ok(skipped)
    }

    /// The kernel has taken the limits: systemd is to know of them, or it would take them back one day.
    fn tell_systemd(&self, resources: &Resources, writes: &[Write]) -> Result<()> {
        let Some(unit) = &self.names.unit else { return Ok(()) };
        let cpu_max = self.cpu_max(resources)?;
        let mut systemd = Systemd::new(unit.bus);
        if systemd.set_limits(&self.names, resources, cpu_max.as_deref())? {
            // It has whole percents of CPU time only, and has just written those.
            let of_cpu: Vec<Write> =
                writes.iter().filter(|write| write.controller == "cpu").cloned().collect();
            exec::Executor::new(self).run(&of_cpu)?;
        }
        Ok(())
    }

    /// Replaces the device rules: the last one that matches an access decides it, and what none matches is denied.
    /// On v2 there is no moment without a filter.
    ///
    /// # Errors
    ///
    /// The rules make no sense, v1 cannot express them, or the kernel refuses.
    pub fn set_devices(&self, rules: &[brig_spec::DeviceRule]) -> Result<()> {
        let policy = devices::Policy::new(rules)?;
        if self.names.mode != Mode::V2
            && let Some(dir) = self.v1_dir("devices")?
        {
            return devices::v1::set(dir, &policy);
        }
        match self.unified_dir()? {
            Some(dir) => {
                let fresh = self.unified().is_some_and(|node| node.fresh.replace(false));
                devices::v2::set(dir, &policy, fresh)
            }
            None => Err(Error::NotJoined {
                source_path: "linux.resources.devices".to_owned(),
                controller: "devices".to_owned(),
            }),
        }
    }

    fn convert(&self, resources: &Resources) -> Result<Converted> {
        if self.names.mode != Mode::V2 {
            return Ok(v1::convert(resources)?);
        }
        Ok(v2::convert(resources, self.cpu_max(resources)?.as_deref())?)
    }

    /// What `cpu.max` says now, where [`v2::needs_cpu_max`].
    fn cpu_max(&self, resources: &Resources) -> Result<Option<String>> {
        match self.unified().filter(|_| self.names.mode == Mode::V2) {
            Some(node) if !node.fresh.get() && v2::needs_cpu_max(resources) => match node.dir()? {
                Some(dir) => dir.read_if_any("cpu.max"),
                None => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// `checkBeforeUpdate`. That usage cannot be read is no reason to refuse: the kernel has its own say.
    fn check_usage(&self, resources: &Resources) -> Result<()> {
        let Some(memory) =
            resources.memory.as_ref().filter(|memory| memory.check_before_update == Some(true))
        else {
            return Ok(());
        };
        let (dir, file) = match self.names.mode {
            Mode::V2 => (self.unified_dir()?, "memory.current"),
            Mode::V1 | Mode::Hybrid => (self.v1_dir("memory")?, "memory.usage_in_bytes"),
        };
        let Some(usage) =
            dir.and_then(|dir| dir.read(file).ok()).and_then(|text| crate::parse::single(&text))
        else {
            return Ok(());
        };
        for (source_path, what, limit) in [
            ("linux.resources.memory.swap", "memory+swap", memory.swap),
            ("linux.resources.memory.limit", "memory", memory.limit),
        ] {
            let limit = limit.unwrap_or(0);
            if limit > 0 && u64::try_from(limit).is_ok_and(|bytes| bytes <= usage) {
                return Err(Error::BelowUsage { source_path, what, limit, usage });
            }
        }
        Ok(())
    }
}

/// Whether there is a limit that needs a v2 controller.
pub(crate) fn any(resources: &Resources) -> bool {
    v2::convert(resources, None).is_ok_and(|converted| !converted.writes.is_empty())
}

/// Whether there is a limit of a controller that a threaded v2 cgroup cannot have.
pub(crate) fn any_of_domain(resources: &Resources) -> bool {
    v2::convert(resources, None).is_ok_and(|converted| {
        converted
            .writes
            .iter()
            .any(|write| matches!(write.controller.as_ref(), "memory" | "io" | "hugetlb" | "rdma"))
    })
}
