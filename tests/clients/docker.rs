//! Docker Engine.

mod crash;
mod exec;
mod life;
mod run;
mod swarm;
