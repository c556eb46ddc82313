//! `update`: changes a container's limits.

use crate::status::ExitCode;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use brig_runtime::RdtChanges;
use brig_spec::{BlockIo, Cpu, Memory, Pids, Resources};

use super::setup::absolute;
use super::{container_id, store};
use crate::error::{Error, Kind};
use crate::flags::{Command, Flag, Parsed};
use crate::global::Global;
use crate::value::{ContainerId, number, size};

/// Flags that a file of resources leaves standing.
const RDT_FLAGS: &[&str] = &["l3-cache-schema", "mem-bw-schema"];

/// What there is to say about limits that the kernel does not have any more.
const KERNEL_MEMORY: &str = "Kernel memory settings are ignored and will be removed";

/// The table.
pub static COMMAND: Command = Command {
    description: "\
Changes limits of a container that has not ended; what is not mentioned stays. Sizes are in
bytes or have a unit (b, k, m, g, t, p: powers of 1024); -1 is unlimited.

The file of --resources holds a JSON object like linux.resources of config.json:

    {
      \"memory\": {\"limit\": 67108864, \"swap\": 67108864, \"checkBeforeUpdate\": true},
      \"cpu\": {\"shares\": 512, \"quota\": 50000, \"period\": 100000, \"cpus\": \"0-1\"},
      \"pids\": {\"limit\": 100},
      \"blockIO\": {\"weight\": 500}
    }",
    flags: &[
        Flag::path(
            "resources",
            "read the limits from this JSON file, or from standard input if it is '-'; all other flags but those for Intel RDT are void",
        )
        .short("r"),
        Flag::int("blkio-weight", "weight of block I/O, 10 to 1000").default("0"),
        Flag::text("cpu-period", "length of the period in which --cpu-quota counts, in microseconds"),
        Flag::text("cpu-quota", "processor time in each period, in microseconds"),
        Flag::text("cpu-burst", "processor time that may be saved up, in microseconds"),
        Flag::text("cpu-share", "weight of processor time against other containers"),
        Flag::text("cpu-rt-period", "length of the period of --cpu-rt-runtime, in microseconds"),
        Flag::text("cpu-rt-runtime", "real-time processor time in each period, in microseconds"),
        Flag::text("cpuset-cpus", "processors that may be used, such as 0-3,7"),
        Flag::text("cpuset-mems", "memory nodes that may be used"),
        Flag::text("cpu-idle", "1: run only when nothing else wants to; 0: as usual"),
        Flag::text("memory", "memory"),
        Flag::text("memory-reservation", "memory that is left to the container when others want it"),
        Flag::text("memory-swap", "memory and swap together"),
        Flag::int("pids-limit", "number of tasks"),
        Flag::text("l3-cache-schema", "Intel RDT: share of the L3 cache"),
        Flag::text("mem-bw-schema", "Intel RDT: memory bandwidth"),
        Flag::text("kernel-memory", "(obsolete, ignored)").hidden(),
        Flag::text("kernel-memory-tcp", "(obsolete, ignored)").hidden(),
    ],
    ..Command::new("update", "change the limits of a container", run)
};

/// What `update` is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdateArgs {
    /// The container's name.
    pub id: ContainerId,
    /// The limits.
    pub resources: ResourcesFrom,
    /// `--l3-cache-schema` and `--mem-bw-schema`.
    pub rdt: RdtChanges,
}

/// Where limits come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourcesFrom {
    /// From standard input (`--resources -`).
    Stdin,
    /// From a file (`--resources`); absolute.
    File(PathBuf),
    /// From the other flags.
    Flags(Box<Resources>),
}

impl UpdateArgs {
    fn new(parsed: &Parsed) -> Result<Self, Error> {
        Ok(Self {
            id: container_id(parsed)?,
            resources: ResourcesFrom::new(parsed)?,
            rdt: RdtChanges {
                l3_cache_schema: parsed.flags.text("l3-cache-schema")?,
                mem_bw_schema: parsed.flags.text("mem-bw-schema")?,
            },
        })
    }
}

impl ResourcesFrom {
    fn new(parsed: &Parsed) -> Result<Self, Error> {
        let Some(source) = parsed.flags.path("resources") else {
            return resources(parsed).map(|resources| Self::Flags(Box::new(resources)));
        };
        let void = |name: &&str| *name != "resources" && !RDT_FLAGS.contains(name);
        for flag in parsed.flags.names().filter(void) {
            log::warn!("--{flag} is ignored because --resources is given");
        }
        if source == "-" {
            return Ok(Self::Stdin);
        }
        Ok(absolute(parsed, "resources")?.map_or(Self::Stdin, Self::File))
    }
}

fn resources(parsed: &Parsed) -> Result<Resources, Error> {
    let flags = &parsed.flags;
    let cpu = Cpu {
        shares: unsigned(parsed, "cpu-share")?,
        quota: signed(parsed, "cpu-quota")?,
        burst: unsigned(parsed, "cpu-burst")?,
        period: unsigned(parsed, "cpu-period")?,
        realtime_runtime: signed(parsed, "cpu-rt-runtime")?,
        realtime_period: unsigned(parsed, "cpu-rt-period")?,
        cpus: flags.text("cpuset-cpus")?.unwrap_or_default(),
        mems: flags.text("cpuset-mems")?.unwrap_or_default(),
        idle: signed(parsed, "cpu-idle")?,
    };
    let memory = Memory {
        limit: bytes(parsed, "memory")?,
        reservation: bytes(parsed, "memory-reservation")?,
        swap: bytes(parsed, "memory-swap")?,
        kernel: bytes(parsed, "kernel-memory")?,
        kernel_tcp: bytes(parsed, "kernel-memory-tcp")?,
        ..Memory::default()
    };
    if memory.kernel.is_some() || memory.kernel_tcp.is_some() {
        log::warn!("{KERNEL_MEMORY}");
    }
    let block_io = BlockIo { weight: blkio_weight(parsed)?, ..BlockIo::default() };
    Ok(Resources {
        memory: given(memory),
        cpu: given(cpu),
        pids: flags.int("pids-limit").map(|limit| Pids { limit: Some(limit) }),
        block_io: given(block_io),
        ..Resources::default()
    })
}

/// The object, unless nothing in it is set.
fn given<T: Default + PartialEq>(object: T) -> Option<T> {
    (object != T::default()).then_some(object)
}

fn signed(parsed: &Parsed, flag: &'static str) -> Result<Option<i64>, Error> {
    convert(parsed, flag, |text| number::decimal("ParseInt", text))
}

fn unsigned(parsed: &Parsed, flag: &'static str) -> Result<Option<u64>, Error> {
    convert(parsed, flag, number::unsigned)
}

fn bytes(parsed: &Parsed, flag: &'static str) -> Result<Option<i64>, Error> {
    convert(parsed, flag, size::bytes)
}

fn convert<T, E: std::fmt::Display>(
    parsed: &Parsed,
    flag: &'static str,
    read: impl FnOnce(&str) -> Result<T, E>,
) -> Result<Option<T>, Error> {
    let text = parsed.flags.text(flag)?;
    text.map(|text| read(&text).map_err(|error| Error::caller(format!("invalid value for {flag}: {error}"))))
        .transpose()
}

/// 0 leaves the weight as it is.
fn blkio_weight(parsed: &Parsed) -> Result<Option<u16>, Error> {
    match parsed.flags.int("blkio-weight").unwrap_or_default() {
        0 => Ok(None),
        weight => {
            u16::try_from(weight).ok().filter(|weight| (10..=1000).contains(weight)).map(Some).ok_or_else(
                || {
                    Error::caller(format!(
                        "invalid value for blkio-weight: {weight} is not in the range 10 to 1000"
                    ))
                },
            )
        }
    }
}

fn run(parsed: &Parsed, global: &Global) -> Result<ExitCode, Error> {
    update(&UpdateArgs::new(parsed)?, global)
}

fn update(args: &UpdateArgs, global: &Global) -> Result<ExitCode, Error> {
    brig_runtime::update(&store(global)?, &args.id, &args.resources.read()?, &args.rdt)?;
    Ok(ExitCode::SUCCESS)
}

impl ResourcesFrom {
    fn read(&self) -> Result<Resources, Error> {
        let mut text = Vec::new();
        let name = match self {
            Self::Flags(resources) => return Ok(Resources::clone(resources)),
            Self::Stdin => {
                std::io::stdin()
                    .read_to_end(&mut text)
                    .map_err(|error| Error::path("read", Path::new("/dev/stdin"), &error))?;
                "standard input".to_owned()
            }
            Self::File(path) => {
                text = std::fs::read(path).map_err(|error| Error::path("open", path, &error))?;
                path.display().to_string()
            }
        };
        let (resources, unknown) = brig_spec::from_slice::<Resources>(&text)
            .map_err(|error| Error::new(Kind::Config, format!("{name}: {error}")))?;
        for key in unknown {
            log::warn!("{name}: {} is not known and has no effect", key.path);
        }
        let kernel = |memory: &Memory| memory.kernel.or(memory.kernel_tcp).is_some_and(|limit| limit != 0);
        if resources.memory.as_ref().is_some_and(kernel) {
            log::warn!("{KERNEL_MEMORY}");
        }
        Ok(resources)
    }
}

#[cfg(test)]
mod tests {
    use brig_spec::{Pids, Resources};

    use super::super::testing::{message, parsed};
    use super::{ResourcesFrom, UpdateArgs};
    use crate::error::Error;

    fn args(words: &[&str]) -> Result<UpdateArgs, Error> {
        UpdateArgs::new(&parsed(&[&["update"], words, &["c1"]].concat()))
    }

    fn resources(words: &[&str]) -> Resources {
        match args(words).unwrap().resources {
            ResourcesFrom::Flags(resources) => *resources,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn nothing_given_is_nothing_changed() {
        assert_eq!(resources(&[]), Resources::default());
        assert_eq!(resources(&["--memory", "", "--blkio-weight=0"]), Resources::default());
    }

    #[test]
    fn numbers() {
        let all = resources(&[
            "--cpu-quota",
            "-1",
            "--cpu-period=100000",
            "--cpu-share",
            "512",
            "--cpu-burst",
            "0",
            "--cpu-idle=1",
            "--cpu-rt-runtime",
            "950000",
            "--cpu-rt-period",
            "1000000",
            "--cpuset-cpus",
            "0-3,7",
            "--cpuset-mems=0",
            "--blkio-weight",
            "10",
            "--pids-limit",
            "-1",
        ]);
        let cpu = all.cpu.unwrap();
        assert_eq!((cpu.quota, cpu.period, cpu.shares), (Some(-1), Some(100_000), Some(512)));
        assert_eq!((cpu.burst, cpu.idle), (Some(0), Some(1)));
        assert_eq!((cpu.realtime_runtime, cpu.realtime_period), (Some(950_000), Some(1_000_000)));
        assert_eq!((cpu.cpus.as_str(), cpu.mems.as_str()), ("0-3,7", "0"));
        assert_eq!(all.block_io.unwrap().weight, Some(10));
        assert_eq!(all.pids, Some(Pids { limit: Some(-1) }));
        assert_eq!(resources(&["--pids-limit", "0"]).pids, Some(Pids { limit: Some(0) }));
    }

    #[test]
    fn sizes() {
        let memory =
            resources(&["--memory", "64M", "--memory-swap", "-1", "--memory-reservation", "33554432"])
                .memory
                .unwrap();
        assert_eq!(memory.limit, Some(64 << 20));
        assert_eq!(memory.swap, Some(-1));
        assert_eq!(memory.reservation, Some(33_554_432));
    }

    #[test]
    fn files() {
        assert_eq!(args(&["-r", "-"]).unwrap().resources, ResourcesFrom::Stdin);
        assert_eq!(args(&["--resources=-"]).unwrap().resources, ResourcesFrom::Stdin);
        let both = args(&["-r", "/r.json", "--memory", "abc", "--l3-cache-schema", "L3:0=f"]).unwrap();
        assert_eq!(both.resources, ResourcesFrom::File("/r.json".into()));
        assert_eq!(both.rdt.l3_cache_schema.as_deref(), Some("L3:0=f"));
    }

    #[test]
    fn refusals() {
        for (words, expected) in [
            (
                ["--cpu-quota", "abc"],
                r#"invalid value for cpu-quota: strconv.ParseInt: parsing "abc": invalid syntax"#,
            ),
            (
                ["--cpu-share", "-5"],
                r#"invalid value for cpu-share: strconv.ParseUint: parsing "-5": invalid syntax"#,
            ),
            (["--memory", "abc"], "invalid value for memory: invalid size: 'abc'"),
            (["--memory-swap", "-2"], "invalid value for memory-swap: invalid size: '-2'"),
            (["--blkio-weight", "9"], "invalid value for blkio-weight: 9 is not in the range 10 to 1000"),
            (
                ["--blkio-weight", "65546"],
                "invalid value for blkio-weight: 65546 is not in the range 10 to 1000",
            ),
        ] {
            assert_eq!(message(args(&words)), expected);
        }
    }
}
