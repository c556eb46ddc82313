//! The fields of config.json for Linux, as in the OCI runtime specification 1.3.

use brig_tests::{Value, json};

/// A type of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    Number,
    Switch,
    Object,
    Texts,
    Numbers,
    Objects,
    /// A map of texts.
    Names,
}

impl Kind {
    /// A value of this type.
    pub fn example(self) -> Value {
        match self {
            Self::Text => json!("x"),
            Self::Number => json!(1),
            Self::Switch => json!(true),
            Self::Object => json!({}),
            Self::Texts => json!(["x"]),
            Self::Numbers => json!([1]),
            Self::Objects => json!([{}]),
            Self::Names => json!({ "x": "y" }),
        }
    }

    /// Values that are not of this type, and where the mistake is.
    pub fn misfits(self, path: &str) -> Vec<(String, Value)> {
        let wrong = [json!("x"), json!(7), json!(true), json!([]), json!({})];
        let right = match self {
            Self::Text => 0,
            Self::Number => 1,
            Self::Switch => 2,
            Self::Texts | Self::Numbers | Self::Objects => 3,
            Self::Object | Self::Names => 4,
        };
        let whole = wrong.iter().enumerate().filter(|(kind, _)| *kind != right);
        let mut all: Vec<_> = whole.map(|(_, value)| (path.to_owned(), value.clone())).collect();
        let element = match self {
            Self::Texts => Some((format!("{path}[0]"), json!(7))),
            Self::Numbers | Self::Objects => Some((format!("{path}[0]"), json!("x"))),
            Self::Names => Some((format!("{path}.key"), json!(7))),
            _ => None,
        };
        all.extend(element);
        all
    }
}

/// The smallest document with this value at this path.
pub fn document(path: &str, value: Value) -> Value {
    // From the innermost step outwards; `a[0]` is a step into an object and one into a list.
    path.rsplit('.').fold(value, |value, step| match step.strip_suffix("[0]") {
        Some(name) => json!({ name: [value] }),
        None => json!({ step: value }),
    })
}

/// Paths of all fields with their types.
pub fn all() -> impl Iterator<Item = (&'static str, Kind)> {
    FIELDS.lines().filter(|line| !line.is_empty()).flat_map(|line| {
        let (object, fields) = line.split_once(':').unwrap();
        fields.split_whitespace().map(move |field| {
            let (name, kind) = field.split_once('/').unwrap();
            let path = if object.is_empty() { name.to_owned() } else { format!("{object}.{name}") };
            // Few and small, and needed until the end of the test.
            (&*path.leak(), kind_of(kind))
        })
    })
}

fn kind_of(letter: &str) -> Kind {
    match letter {
        "t" => Kind::Text,
        "n" => Kind::Number,
        "b" => Kind::Switch,
        "o" => Kind::Object,
        "tt" => Kind::Texts,
        "nn" => Kind::Numbers,
        "oo" => Kind::Objects,
        "tm" => Kind::Names,
        other => panic!("{other}"),
    }
}

/// A line for each object: its path, then its members with their types.
const FIELDS: &str = "
:ociVersion/t process/o root/o hostname/t domainname/t mounts/oo hooks/o annotations/tm linux/o
root:path/t readonly/b
mounts[0]:destination/t type/t source/t options/tt uidMappings/oo gidMappings/oo
mounts[0].uidMappings[0]:containerID/n hostID/n size/n
mounts[0].gidMappings[0]:containerID/n hostID/n size/n
process:terminal/b consoleSize/o cwd/t env/tt args/tt rlimits/oo apparmorProfile/t capabilities/o noNewPrivileges/b oomScoreAdj/n
process:scheduler/o selinuxLabel/t ioPriority/o execCPUAffinity/o user/o
process.consoleSize:height/n width/n
process.rlimits[0]:type/t soft/n hard/n
process.capabilities:bounding/tt effective/tt inheritable/tt permitted/tt ambient/tt
process.scheduler:policy/t nice/n priority/n flags/tt runtime/n deadline/n period/n
process.ioPriority:class/t priority/n
process.execCPUAffinity:initial/t final/t
process.user:uid/n gid/n umask/n additionalGids/nn
hooks:prestart/oo createRuntime/oo createContainer/oo startContainer/oo poststart/oo poststop/oo
hooks.prestart[0]:path/t args/tt env/tt timeout/n
hooks.createRuntime[0]:path/t args/tt env/tt timeout/n
hooks.createContainer[0]:path/t args/tt env/tt timeout/n
hooks.startContainer[0]:path/t args/tt env/tt timeout/n
hooks.poststart[0]:path/t args/tt env/tt timeout/n
hooks.poststop[0]:path/t args/tt env/tt timeout/n
linux:uidMappings/oo gidMappings/oo sysctl/tm resources/o cgroupsPath/t namespaces/oo devices/oo netDevices/o seccomp/o
linux:rootfsPropagation/t maskedPaths/tt readonlyPaths/tt mountLabel/t intelRdt/o memoryPolicy/o personality/o timeOffsets/o
linux.uidMappings[0]:containerID/n hostID/n size/n
linux.gidMappings[0]:containerID/n hostID/n size/n
linux.namespaces[0]:type/t path/t
linux.devices[0]:path/t type/t major/n minor/n fileMode/n uid/n gid/n
linux.netDevices:eth0/o
linux.netDevices.eth0:name/t
linux.timeOffsets:monotonic/o boottime/o
linux.timeOffsets.monotonic:secs/n nanosecs/n
linux.timeOffsets.boottime:secs/n nanosecs/n
linux.intelRdt:closID/t schemata/tt l3CacheSchema/t memBwSchema/t enableMonitoring/b
linux.memoryPolicy:mode/t nodes/t flags/tt
linux.personality:domain/t flags/tt
linux.seccomp:defaultAction/t defaultErrnoRet/n architectures/tt flags/tt listenerPath/t listenerMetadata/t syscalls/oo
linux.seccomp.syscalls[0]:names/tt action/t errnoRet/n args/oo
linux.seccomp.syscalls[0].args[0]:index/n value/n valueTwo/n op/t
linux.resources:devices/oo memory/o cpu/o pids/o blockIO/o hugepageLimits/oo network/o rdma/o unified/tm
linux.resources.devices[0]:allow/b type/t major/n minor/n access/t
linux.resources.memory:limit/n reservation/n swap/n kernel/n kernelTCP/n swappiness/n disableOOMKiller/b useHierarchy/b
linux.resources.memory:checkBeforeUpdate/b
linux.resources.cpu:shares/n quota/n burst/n period/n realtimeRuntime/n realtimePeriod/n cpus/t mems/t idle/n
linux.resources.pids:limit/n
linux.resources.blockIO:weight/n leafWeight/n weightDevice/oo throttleReadBpsDevice/oo throttleWriteBpsDevice/oo
linux.resources.blockIO:throttleReadIOPSDevice/oo throttleWriteIOPSDevice/oo
linux.resources.blockIO.weightDevice[0]:major/n minor/n weight/n leafWeight/n
linux.resources.blockIO.throttleReadBpsDevice[0]:major/n minor/n rate/n
linux.resources.blockIO.throttleWriteBpsDevice[0]:major/n minor/n rate/n
linux.resources.blockIO.throttleReadIOPSDevice[0]:major/n minor/n rate/n
linux.resources.blockIO.throttleWriteIOPSDevice[0]:major/n minor/n rate/n
linux.resources.hugepageLimits[0]:pageSize/t limit/n
linux.resources.network:classID/n priorities/oo
linux.resources.network.priorities[0]:name/t priority/n
linux.resources.rdma:mlx5_1/o
linux.resources.rdma.mlx5_1:hcaHandles/n hcaObjects/n
";
