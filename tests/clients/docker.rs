//! Docker Engine.

mod crash;
mod exec;
mod flags;
mod life;
mod report;
mod run;
mod swarm;
