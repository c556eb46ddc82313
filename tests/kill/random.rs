//! Killed at a random time: no tracer slows the command down or orders its tasks.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::options::Options;
use crate::scene::Scene;

/// Runs it; the number of runs that left something.
pub fn run(options: &Options) -> usize {
    println!("{:10} {:>7} {:>7} {:>5}", "command", "runs", "killed", "left");
    let mut failures = 0;
    for command in &options.commands {
        let scene = Scene::new();
        let usual = usual_duration(&scene, command);
        let (mut killed, mut left) = (0, 0);
        for _ in 0..options.runs {
            scene.prepare(command);
            killed += usize::from(strike(&scene, command, usual));
            if let Err(what) = scene.delete() {
                left += 1;
                println!("  {command} killed at random: {what}");
            }
        }
        println!("{command:10} {:>7} {killed:>7} {left:>5}", options.runs);
        failures += left;
    }
    failures
}

pub fn spawn(scene: &Scene, command: &str) -> std::process::Child {
    let line = scene.command_line(command);
    Command::new(&line[0])
        .args(&line[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// How long the command takes when nobody kills it.
fn usual_duration(scene: &Scene, command: &str) -> Duration {
    let mut durations: Vec<Duration> = (0..5)
        .map(|_| {
            scene.prepare(command);
            let begun = Instant::now();
            spawn(scene, command).wait().unwrap();
            let took = begun.elapsed();
            let _ = scene.delete();
            took
        })
        .collect();
    durations.sort();
    durations[2]
}

/// Kills it somewhere between its beginning and a little after its usual end; whether it was still there.
fn strike(scene: &Scene, command: &str, usual: Duration) -> bool {
    let part = f64::from(random()) / f64::from(u32::MAX);
    let mut child = spawn(scene, command);
    let at = Instant::now() + usual.mul_f64(part * 1.1);
    // Sleeping is too coarse for a command of a few milliseconds.
    while Instant::now() < at {
        std::hint::spin_loop();
    }
    let _ = child.kill();
    let status = child.wait().unwrap();
    std::os::unix::process::ExitStatusExt::signal(&status) == Some(9)
}

pub fn random() -> u32 {
    let mut random = [0_u8; 4];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()).unwrap();
    u32::from_ne_bytes(random)
}
