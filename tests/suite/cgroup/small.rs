//! Row 40 of the cases: memory limits that hardly leave room for a program.

use brig_tests::{Bundle, better_than_runc, json};

use super::lacks;

fn limited(kib: i64) -> Bundle {
    let mut b = Bundle::new(&["echo", "here"]);
    b.limit("memory", json!({ "limit": kib << 10, "swap": kib << 10 }));
    b
}

#[test]
fn half_a_megabyte_is_enough() {
    if lacks(&["memory"]) {
        return;
    }
    better_than_runc("needs several megabytes for its own init", || {
        for kib in [512, 768, 1024, 2048, 4096] {
            let b = limited(kib);
            assert_eq!(b.run().ok().out, "here\n", "{kib} KiB");
            b.assert_gone();
        }
    });
}

#[test]
fn what_is_too_little_is_called_so() {
    if lacks(&["memory"]) {
        return;
    }
    better_than_runc("says something else, depending on when it is killed", || {
        for kib in [4, 64] {
            let b = limited(kib);
            b.run().fails().says("memory limit too low");
            b.assert_gone();
        }
        // Between here and there the program may be killed too, once it runs.
        for kib in [128, 256, 384] {
            let b = limited(kib);
            let finished = b.run().run();
            if !matches!(finished.code(), 0 | 137) {
                finished.says("memory limit too low");
            }
            b.assert_gone();
        }
    });
}
