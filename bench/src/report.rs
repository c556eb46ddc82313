//! What was measured, as a table, as JSON and as a chart.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::chart;
use crate::goals::goals;
use crate::rows::{Bench, Results, Sample};
use crate::runtime::Kind;
use crate::stats::{Spread, ratio, spread};

/// Writes everything, and prints the tables.
pub fn write(bench: &Bench, results: &Results, out: &Path, folder: &Path) {
    fs::create_dir_all(out).unwrap();
    let tables = tables(bench, results);
    println!("{tables}");
    fs::write(out.join("results.json"), serde_json::to_vec_pretty(&json(bench, results)).unwrap()).unwrap();
    fs::write(folder.join("RESULTS.md"), format!("{}\n{tables}{NOT_MEASURED}", head(bench))).unwrap();
    fs::write(folder.join("results.svg"), chart::svg(&results.rows)).unwrap();
    println!(
        "written: {}, RESULTS.md and results.svg in {}",
        out.join("results.json").display(),
        folder.display()
    );
}

const NOT_MEASURED: &str = "
## Not measured

The floor's equivalent of Docker's config; 500 bind mounts, 600 masked paths and 5,000 host mounts; 100 exec probes a second for a
minute (the CPU time of one `exec` stands above); the systemd driver; the smallest `memory.max`, for which a cgroup v2 beside v1 has
no controller; curves over the number of containers.
";

fn head(bench: &Bench) -> String {
    let versions: Vec<String> = bench
        .runtimes
        .iter()
        .filter(|runtime| runtime.kind.is_whole())
        .map(|runtime| format!("{} (`{}`)", runtime.kind.name(), runtime.version))
        .collect();
    format!(
        "# Results of `make bench`\n\nWritten by `make bench`; [docs/performance.md](../docs/performance.md) says how it measures. \
         {} rounds, each runtime in turn in each; medians, and quartiles in parentheses. A ratio is the median of the ratios to \
         brig in the same round.\n\nMachine: {}. Load average at the beginning {}, at the end {}; one runtime at a time is one of it. Runtimes: {}.\n\n![wall times](results.svg)\n",
        bench.rounds,
        machine(),
        bench.load,
        load(),
        versions.join(", ")
    )
}

/// The load average of the last minute: whoever else uses the machine makes all times longer, and waiting for another process most.
pub fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

/// The machine, without its name.
fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let field = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split(": ").nth(1)).unwrap_or("unknown").to_owned()
    };
    let cpus = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let guest = if info.contains(" hypervisor") { ", a virtual machine" } else { "" };
    let memory = read("/proc/meminfo");
    let kb: f64 = memory.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()).unwrap_or(0.0);
    let release = read("/proc/sys/kernel/osrelease");
    // What follows the number is whose kernel it is.
    let release = release.trim().split('-').next().unwrap_or_default().to_owned();
    format!(
        "{cpus} CPUs ({}){guest}, {:.0} GB of memory, Linux {release}, a pure cgroup v2 mount",
        field("model name"),
        kb / 1024.0 / 1024.0
    )
}

fn shown(spread: Spread, digits: usize) -> String {
    format!("{:.digits$} ({:.digits$}–{:.digits$})", spread.median, spread.low, spread.high)
}

fn tables(bench: &Bench, results: &Results) -> String {
    let mut text = String::from("## Commands\n\n| | | wall, ms | to brig | CPU, ms | to brig | peak, MB |\n");
    text.push_str("| --- | --- | --- | --- | --- | --- | --- |\n");
    for row in &results.rows {
        let Some(brig) = row.of(Kind::Brig) else { continue };
        for series in &row.series {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {:.2} | {} | {:.2} | {:.2} |",
                row.name,
                series.kind.name(),
                shown(spread(&series.values(Sample::wall)), 2),
                ratio(&series.values(Sample::wall), &brig.values(Sample::wall)),
                shown(spread(&series.values(Sample::cpu)), 2),
                ratio(&series.values(Sample::cpu), &brig.values(Sample::cpu)),
                spread(&series.values(Sample::peak)).median / 1024.0,
            );
        }
    }
    text.push_str("\n## Memory of a created, not started container\n\n| | private, KB |\n| --- | --- |\n");
    for (kind, kb) in &results.waiting_kb {
        let _ = writeln!(text, "| {} | {} |", kind.name(), shown(spread(kb), 0));
    }
    text.push_str("\n## Sixteen at a time\n\n| | containers per second |\n| --- | --- |\n");
    for (kind, rates) in &results.at_once {
        let _ = writeln!(text, "| {} | {} |", kind.name(), shown(spread(rates), 1));
    }
    let many = bench.containers;
    let _ = writeln!(
        text,
        "\n## With {many} containers alive\n\n| | | with none, ms | with {many}, ms | ratio |\n| --- | --- | --- | --- | --- |"
    );
    for crowd in &results.crowds {
        let (alone, among) = (spread(&crowd.alone), spread(&crowd.among));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {:.2} |",
            crowd.command,
            crowd.kind.name(),
            shown(alone, 2),
            shown(among, 2),
            among.median / alone.median
        );
    }
    text.push_str("\n## Goals\n\n| | goal | found | reached |\n| --- | --- | --- | --- |\n");
    for goal in goals(results, many) {
        let reached = if goal.reached { "yes" } else { "no" };
        let _ = writeln!(text, "| {} | {} | {} | {reached} |", goal.what, goal.goal, goal.found);
    }
    text
}

/// Every sample.
fn json(bench: &Bench, results: &Results) -> Value {
    let rows = results.rows.iter().map(|row| {
        let series = row.series.iter().map(|series| {
            json!({
                "runtime": series.kind.name(),
                "wall_ms": series.values(Sample::wall),
                "cpu_ms": series.values(Sample::cpu),
                "peak_kb": series.values(Sample::peak),
            })
        });
        json!({ "name": row.name, "series": series.collect::<Vec<_>>() })
    });
    let crowds = results.crowds.iter().map(|crowd| {
        json!({
            "runtime": crowd.kind.name(), "command": crowd.command, "alone_ms": crowd.alone, "among_ms": crowd.among
        })
    });
    let named = |all: &[(Kind, Vec<f64>)]| {
        all.iter()
            .map(|(kind, values)| json!({ "runtime": kind.name(), "values": values }))
            .collect::<Vec<_>>()
    };
    let versions = bench.runtimes.iter().map(|r| json!({ "runtime": r.kind.name(), "version": r.version }));
    json!({
        "machine": machine(),
        "runtimes": versions.collect::<Vec<_>>(),
        "rounds": bench.rounds,
        "containers": bench.containers,
        "rows": rows.collect::<Vec<_>>(),
        "alive": crowds.collect::<Vec<_>>(),
        "waiting_private_kb": named(&results.waiting_kb),
        "at_once_per_second": named(&results.at_once),
    })
}
