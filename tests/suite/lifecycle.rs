//! The life of a container: create, start, run, state, kill, list, delete.

use brig_tests::{
    Bundle, Run, Value, better_than_runc, fails_before_runc, host, is_older_runc, json, only_brig, runtime,
    since_runc,
};

mod delete;
mod kill;
mod list;
mod races;
mod run;
mod states;
