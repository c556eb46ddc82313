//! What is measured.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitOptions, waitpid};

use crate::bundle::{Bundles, cgroup};
use crate::runtime::{Kind, Runtime};

const WARM_UP: usize = 3;
const AT_ONCE: usize = 16;
const LONG: &[&str] = &["/bin/sleep", "100000"];
const TRUE: &[&str] = &["/bin/true"];

/// What a command took.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sample {
    pub wall_ms: f64,
    pub cpu_ms: f64,
    pub peak_kb: f64,
}

impl Sample {
    pub fn wall(&self) -> f64 {
        self.wall_ms
    }

    pub fn cpu(&self) -> f64 {
        self.cpu_ms
    }

    pub fn peak(&self) -> f64 {
        self.peak_kb
    }
}

impl std::ops::Add for Sample {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            wall_ms: self.wall_ms + other.wall_ms,
            cpu_ms: self.cpu_ms + other.cpu_ms,
            peak_kb: self.peak_kb.max(other.peak_kb),
        }
    }
}

/// All samples of one runtime in a row.
#[derive(Debug)]
pub struct Series {
    pub kind: Kind,
    pub samples: Vec<Sample>,
}

/// One thing that was measured, of several runtimes.
#[derive(Debug)]
pub struct Row {
    pub name: &'static str,
    pub series: Vec<Series>,
}

impl Row {
    pub fn of(&self, kind: Kind) -> Option<&Series> {
        self.series.iter().find(|series| series.kind == kind)
    }
}

impl Series {
    pub fn values(&self, what: fn(&Sample) -> f64) -> Vec<f64> {
        self.samples.iter().map(what).collect()
    }
}

/// Commands with no other container alive, and with many.
#[derive(Debug)]
pub struct Crowd {
    pub kind: Kind,
    pub command: &'static str,
    pub alone: Vec<f64>,
    pub among: Vec<f64>,
}

/// Everything that was measured.
#[derive(Debug)]
pub struct Results {
    pub rows: Vec<Row>,
    pub crowds: Vec<Crowd>,
    /// Containers per second, of each runtime.
    pub at_once: Vec<(Kind, Vec<f64>)>,
    /// Private memory of the waiting process of a created container, in kB.
    pub waiting_kb: Vec<(Kind, Vec<f64>)>,
}

#[derive(Debug)]
pub struct Bench {
    pub runtimes: Vec<Runtime>,
    pub rounds: usize,
    pub containers: usize,
    /// The load average at the beginning.
    pub load: String,
    measure: PathBuf,
    dir: PathBuf,
    bundles: Bundles,
}

impl Bench {
    pub fn new(
        runtimes: Vec<Runtime>,
        measure: PathBuf,
        dir: &Path,
        rounds: usize,
        containers: usize,
    ) -> Self {
        let brig = runtimes.iter().find(|runtime| runtime.kind == Kind::Brig).expect("BRIG is not set");
        let bundles = Bundles::new(&brig.program, dir);
        fs::create_dir_all("/sys/fs/cgroup/brig-test/bench").unwrap();
        Self {
            runtimes,
            rounds,
            containers,
            load: crate::report::load(),
            measure,
            dir: dir.to_owned(),
            bundles,
        }
    }

    pub fn all(&self) -> Results {
        let default = self.bundles.write(&self.bundles.default, "default", TRUE);
        let docker = self.bundles.write(&self.bundles.docker, "docker", TRUE);
        let rows = vec![
            self.row(
                "run",
                |kind| kind != Kind::CrunUncached,
                |runtime| self.run(runtime, "default", &default),
            ),
            self.row(
                "run, Docker's config",
                |kind| kind != Kind::Floor,
                |runtime| self.run(runtime, "docker", &docker),
            ),
            self.row("create + start + delete", Kind::is_whole, |runtime| self.life(runtime, &default)),
            self.exec(),
        ];
        let waiting_kb =
            self.whole().map(|runtime| (runtime.kind, self.waiting(runtime, &default))).collect();
        let at_once = self.at_once();
        let crowds = self.whole().flat_map(|runtime| self.crowd(runtime)).collect();
        Results { rows, crowds, at_once, waiting_kb }
    }

    fn whole(&self) -> impl Iterator<Item = &Runtime> {
        self.runtimes.iter().filter(|runtime| runtime.kind.is_whole())
    }

    /// Takes one sample of each runtime in turn, again and again.
    fn row(
        &self,
        name: &'static str,
        takes_part: impl Fn(Kind) -> bool,
        sample: impl Fn(&Runtime) -> Sample,
    ) -> Row {
        println!("measuring {name}");
        let runtimes: Vec<&Runtime> = self.runtimes.iter().filter(|r| takes_part(r.kind)).collect();
        let mut series: Vec<Series> =
            runtimes.iter().map(|r| Series { kind: r.kind, samples: Vec::new() }).collect();
        for round in 0..WARM_UP + self.rounds {
            for (runtime, series) in runtimes.iter().zip(&mut series) {
                runtime.before();
                let sample = sample(runtime);
                if round >= WARM_UP {
                    series.samples.push(sample);
                }
            }
        }
        Row { name, series }
    }

    /// Runs a command by `measure`.
    fn measured(&self, words: &[String]) -> Sample {
        let file = self.dir.join("sample");
        let mut command = Command::new(&self.measure);
        command.arg(&file).args(words).stdin(Stdio::null()).stdout(Stdio::null());
        let status = command.status().unwrap();
        assert!(status.success(), "{words:?}: {status}");
        let text = fs::read_to_string(&file).unwrap();
        let numbers: Vec<f64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let &[status, wall_ns, cpu_us, peak_kb] = numbers.as_slice() else {
            panic!("measure wrote {text:?}")
        };
        assert!(status == 0.0, "{words:?} ended with {status}");
        Sample { wall_ms: wall_ns / 1e6, cpu_ms: cpu_us / 1e3, peak_kb }
    }

    fn run(&self, runtime: &Runtime, id: &str, bundle: &Path) -> Sample {
        let rootfs = self.bundles.rootfs();
        let dir = cgroup_dir(id);
        if runtime.kind == Kind::Floor {
            return self.measured(&runtime.words(&["run", text(&rootfs), text(&dir)]));
        }
        self.measured(&runtime.words(&["run", "--bundle", text(bundle), id]))
    }

    /// As a manager calls the commands: it knows from the pid file what to wait for. What they took is added up; the container's own
    /// process is not in the CPU time of `create`, for no command waits for it.
    fn life(&self, runtime: &Runtime, bundle: &Path) -> Sample {
        let pid_file = self.dir.join("pid");
        let create = self.measured(&runtime.words(&[
            "create",
            "--bundle",
            text(bundle),
            "--pid-file",
            text(&pid_file),
            "default",
        ]));
        let start = self.measured(&runtime.words(&["start", "default"]));
        reap(&pid_file);
        create + start + self.measured(&runtime.words(&["delete", "default"]))
    }

    fn exec(&self) -> Row {
        // Each runtime in a container of its own, and the floor in brig's.
        for runtime in self.whole() {
            let cgroup = Self::target(runtime);
            let bundle = self.bundles.write(&self.bundles.default, &cgroup, LONG);
            let pid = self.pid(runtime);
            runtime.ok(&["run", "-d", "--bundle", text(&bundle), "--pid-file", text(&pid), "target"]);
        }
        let brig = self.runtimes.iter().find(|r| r.kind == Kind::Brig).unwrap();
        let first = fs::read_to_string(self.pid(brig)).unwrap();
        let row = self.row(
            "exec",
            |kind| kind != Kind::CrunUncached,
            |runtime| {
                if runtime.kind == Kind::Floor {
                    return self.measured(&runtime.words(&[
                        "exec",
                        first.trim(),
                        text(&cgroup_dir(&Self::target(brig))),
                    ]));
                }
                self.measured(&runtime.words(&["exec", "target", "/bin/true"]))
            },
        );
        for runtime in self.whole() {
            self.end(runtime, "target", &self.pid(runtime));
        }
        row
    }

    fn target(runtime: &Runtime) -> String {
        format!("target-{}", runtime.kind.name())
    }

    fn pid(&self, runtime: &Runtime) -> PathBuf {
        self.dir.join(format!("{}-pid", runtime.kind.name()))
    }

    fn end(&self, runtime: &Runtime, id: &str, pid_file: &Path) {
        runtime.ok(&["kill", id, "KILL"]);
        reap(pid_file);
        runtime.ok(&["delete", id]);
    }

    /// Private memory of the processes of a created container, which wait for `start`.
    fn waiting(&self, runtime: &Runtime, bundle: &Path) -> Vec<f64> {
        let pid_file = self.dir.join("pid");
        (0..5)
            .map(|_| {
                runtime.ok(&["create", "--bundle", text(bundle), "--pid-file", text(&pid_file), "default"]);
                let pids = fs::read_to_string(cgroup_dir("default").join("cgroup.procs")).unwrap();
                let kb = pids.lines().map(private_kb).sum();
                self.end(runtime, "default", &pid_file);
                kb
            })
            .collect()
    }

    /// Containers per second when sixteen are run at a time.
    fn at_once(&self) -> Vec<(Kind, Vec<f64>)> {
        println!("measuring {AT_ONCE} at a time");
        let ids: Vec<String> = (0..AT_ONCE).map(|at| format!("at-once{at}")).collect();
        let bundles: Vec<PathBuf> =
            ids.iter().map(|id| self.bundles.write(&self.bundles.default, id, TRUE)).collect();
        let each = 6_u32;
        let mut found: Vec<(Kind, Vec<f64>)> = self.whole().map(|r| (r.kind, Vec::new())).collect();
        for _ in 0..5 {
            for (runtime, (_, rates)) in self.whole().zip(&mut found) {
                let begun = Instant::now();
                std::thread::scope(|scope| {
                    for (id, bundle) in ids.iter().zip(&bundles) {
                        scope.spawn(move || {
                            (0..each).for_each(|_| runtime.ok(&["run", "--bundle", text(bundle), id]));
                        });
                    }
                });
                let count = f64::from(each) * f64::from(u32::try_from(AT_ONCE).unwrap());
                rates.push(count / begun.elapsed().as_secs_f64());
            }
        }
        found
    }

    /// Commands with none alive but the one they are about, before and after; and with many alive, in between.
    fn crowd(&self, runtime: &Runtime) -> Vec<Crowd> {
        println!("measuring {} with {} containers alive", runtime.kind.name(), self.containers);
        let target = self.bundles.write(&self.bundles.default, "target", LONG);
        let pid_file = self.pid(runtime);
        runtime.ok(&["run", "-d", "--bundle", text(&target), "--pid-file", text(&pid_file), "target"]);
        let mut found: Vec<Crowd> = ["run", "exec", "state", "delete", "list"]
            .map(|command| Crowd { kind: runtime.kind, command, alone: Vec::new(), among: Vec::new() })
            .into();
        let half = self.rounds.div_ceil(4);
        self.commands(runtime, half, &mut found, |crowd| &mut crowd.alone);
        let pids: Vec<(String, PathBuf)> = (0..self.containers)
            .map(|at| {
                let id = format!("many{at}");
                let bundle = self.bundles.write(&self.bundles.default, &id, LONG);
                let pid = bundle.join("pid");
                runtime.ok(&["run", "-d", "--bundle", text(&bundle), "--pid-file", text(&pid), &id]);
                (id, pid)
            })
            .collect();
        self.commands(runtime, half * 2, &mut found, |crowd| &mut crowd.among);
        for (id, pid) in &pids {
            self.end(runtime, id, pid);
        }
        self.commands(runtime, half, &mut found, |crowd| &mut crowd.alone);
        self.end(runtime, "target", &pid_file);
        found
    }

    fn commands(
        &self,
        runtime: &Runtime,
        rounds: usize,
        found: &mut [Crowd],
        part: fn(&mut Crowd) -> &mut Vec<f64>,
    ) {
        let default = self.bundles.write(&self.bundles.default, "default", TRUE);
        let pid = self.dir.join("pid");
        for round in 0..WARM_UP + rounds {
            for crowd in &mut *found {
                let words = match crowd.command {
                    "run" => runtime.words(&["run", "--bundle", text(&default), "default"]),
                    "exec" => runtime.words(&["exec", "target", "/bin/true"]),
                    "state" => runtime.words(&["state", "target"]),
                    "list" => runtime.words(&["list"]),
                    _ => {
                        let bundle = text(&default);
                        runtime.ok(&["create", "--bundle", bundle, "--pid-file", text(&pid), "default"]);
                        runtime.ok(&["start", "default"]);
                        reap(&pid);
                        runtime.words(&["delete", "default"])
                    }
                };
                let sample = self.measured(&words);
                if round >= WARM_UP {
                    part(crowd).push(sample.wall_ms);
                }
            }
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // Whatever a failed measurement has left.
        if std::thread::panicking() {
            for runtime in self.runtimes.iter().filter(|runtime| runtime.kind != Kind::Floor) {
                for entry in fs::read_dir(&runtime.root).into_iter().flatten().flatten() {
                    let words = runtime.words(&["delete", "--force", &entry.file_name().to_string_lossy()]);
                    let _ = Command::new(&words[0]).args(&words[1..]).stderr(Stdio::null()).status();
                }
            }
        }
        let _ = fs::remove_dir("/sys/fs/cgroup/brig-test/bench");
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path that is text")
}

fn cgroup_dir(id: &str) -> PathBuf {
    PathBuf::from(format!("/sys/fs/cgroup{}", cgroup(id)))
}

/// Waits for the first process of a container, which is a child since its parent has ended.
fn reap(pid_file: &Path) {
    let pid: i32 = fs::read_to_string(pid_file).unwrap().trim().parse().unwrap();
    let begun = Instant::now();
    // It may become a child a moment later than its parent is waited for.
    while waitpid(Pid::from_raw(pid), WaitOptions::empty()).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(10), "process {pid} is no child");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn private_kb(pid: &str) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    text.lines()
        .filter(|line| line.starts_with("Private_Clean:") || line.starts_with("Private_Dirty:"))
        .filter_map(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok())
        .sum()
}
