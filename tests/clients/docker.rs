//! Docker Engine.

mod exec;
mod life;
mod run;
