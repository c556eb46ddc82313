//! The goals, and whether what was measured reaches them.

use crate::rows::{Results, Row, Sample};
use crate::runtime::Kind;
use crate::stats::{ratio, spread};

/// A goal, and what was found; whether it is reached is not told where the runtime to compare with was not there.
#[derive(Debug)]
pub struct Goal {
    pub what: String,
    pub goal: String,
    pub found: String,
    pub reached: bool,
}

/// How much slower another runtime is than brig, at least; or how much slower brig may be than the floor.
fn ratios(rows: &[Row], found: &mut Vec<Goal>) {
    let goals = [
        ("run", Kind::Floor, 1.3),
        ("run", Kind::Crun, 2.2),
        ("run", Kind::Runc, 6.0),
        ("run, Docker's config", Kind::CrunUncached, 3.0),
        ("run, Docker's config", Kind::Crun, 2.0),
        ("create + start + delete", Kind::Crun, 2.0),
        ("exec", Kind::Floor, 1.3),
        ("exec", Kind::Crun, 2.0),
    ];
    for (name, kind, goal) in goals {
        let Some(row) = rows.iter().find(|row| row.name == name) else { continue };
        let (Some(brig), Some(other)) = (row.of(Kind::Brig), row.of(kind)) else { continue };
        let (brig, other) = (brig.values(Sample::wall), other.values(Sample::wall));
        let (is_floor, what) = (kind == Kind::Floor, format!("{name}: wall time"));
        let times = if is_floor { ratio(&brig, &other) } else { ratio(&other, &brig) };
        found.push(if is_floor {
            Goal {
                what,
                goal: format!("at most {goal} × the floor"),
                found: format!("{times:.2} ×"),
                reached: times <= goal,
            }
        } else {
            Goal {
                what,
                goal: format!("{} takes at least {goal} × as long", kind.name()),
                found: format!("{times:.2} ×"),
                reached: times >= goal,
            }
        });
    }
    let Some(exec) = rows.iter().find(|row| row.name == "exec") else { return };
    for (kind, goal) in [(Kind::Crun, 2.0), (Kind::Runc, 6.0)] {
        let (Some(brig), Some(other)) = (exec.of(Kind::Brig), exec.of(kind)) else { continue };
        let times = ratio(&other.values(Sample::cpu), &brig.values(Sample::cpu));
        found.push(Goal {
            what: "exec: CPU time".to_owned(),
            goal: format!("{} uses at least {goal} × as much", kind.name()),
            found: format!("{times:.2} ×"),
            reached: times >= goal,
        });
    }
}

fn memory(results: &Results, found: &mut Vec<Goal>) {
    for name in ["run", "exec"] {
        let row = results.rows.iter().find(|row| row.name == name);
        let Some(brig) = row.and_then(|row| row.of(Kind::Brig)) else { continue };
        let kb = spread(&brig.values(Sample::peak)).median;
        found.push(Goal {
            what: format!("{name}: peak memory of the largest process"),
            goal: "at most 2 MB".to_owned(),
            found: format!("{:.2} MB", kb / 1024.0),
            reached: kb <= 2048.0,
        });
    }
    for (_, kb) in results.waiting_kb.iter().filter(|(kind, _)| *kind == Kind::Brig) {
        let kb = spread(kb).median;
        found.push(Goal {
            what: "created, not started: private memory".to_owned(),
            goal: "at most 300 KB".to_owned(),
            found: format!("{kb:.0} KB"),
            reached: kb <= 300.0,
        });
    }
}

fn many(results: &Results, containers: usize, found: &mut Vec<Goal>) {
    for crowd in results.crowds.iter().filter(|crowd| crowd.kind == Kind::Brig) {
        let (alone, among) = (spread(&crowd.alone).median, spread(&crowd.among).median);
        if crowd.command == "list" {
            if containers == 1000 {
                found.push(Goal {
                    what: "list of 1000 containers".to_owned(),
                    goal: "under 30 ms".to_owned(),
                    found: format!("{among:.1} ms"),
                    reached: among < 30.0,
                });
            }
            continue;
        }
        found.push(Goal {
            what: format!("{} with {containers} containers alive", crowd.command),
            goal: "at most 1.1 × the time with none".to_owned(),
            found: format!("{:.2} ×", among / alone),
            reached: among / alone <= 1.1,
        });
    }
    let rate = |kind| results.at_once.iter().find(|(of, _)| *of == kind).map(|(_, rates)| rates.as_slice());
    if let (Some(brig), Some(crun)) = (rate(Kind::Brig), rate(Kind::Crun)) {
        let times = ratio(brig, crun);
        found.push(Goal {
            what: "16 at a time: containers per second".to_owned(),
            goal: "at least 2 × crun".to_owned(),
            found: format!("{times:.2} ×"),
            reached: times >= 2.0,
        });
    }
}

/// All goals for which there are measurements.
pub fn goals(results: &Results, containers: usize) -> Vec<Goal> {
    let mut found = Vec::new();
    ratios(&results.rows, &mut found);
    memory(results, &mut found);
    many(results, containers, &mut found);
    found
}
