//! Root of the init program: the modules of `src/init` that it shares with brig, and an entry point without a libc.
//!
//! Built by `build.rs` and embedded into brig; see `src/init/mod.rs`.
#![no_std]
#![no_main]
#![allow(dead_code)]

#[path = "../src/init/abi.rs"]
mod abi;
#[path = "../src/init/arch.rs"]
mod arch;
#[path = "../src/init/calls.rs"]
mod calls;
#[path = "../src/init/hooks.rs"]
mod hooks;
#[path = "../src/init/program.rs"]
mod program;

#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(".globl _start", "_start:", "xor ebp, ebp", "and rsp, -16", "call {main}", "ud2", main = sym main);
#[cfg(target_arch = "aarch64")]
core::arch::global_asm!(".globl _start", "_start:", "mov x29, xzr", "mov x30, xzr", "bl {main}", "brk 1", main = sym main);

extern "C" fn main() -> ! {
    // SAFETY: brig maps the data segment, which starts with the parameters, at this address of every image that it makes.
    let params = unsafe { &*(abi::DATA_BASE as *const abi::Params) };
    program::run(params)
}

/// Nothing here is meant to panic; should it, the process ends and brig sees its channel close.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    calls::exit(254)
}

/// The compiler may call these four for copies; there is no libc to bring them.
///
/// # Safety
///
/// As the C function of that name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, n: usize) -> *mut u8 {
    let mut i = 0;
    while i < n {
        // SAFETY: the caller's promise covers `n` bytes on both sides. Volatile, lest this loop become a call of itself.
        unsafe { to.add(i).write_volatile(from.add(i).read()) };
        i += 1;
    }
    to
}

/// See [`memcpy`].
///
/// # Safety
///
/// As the C function of that name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memset(to: *mut u8, byte: i32, n: usize) -> *mut u8 {
    let mut i = 0;
    while i < n {
        // SAFETY: the caller's promise covers `n` bytes.
        unsafe { to.add(i).write_volatile(byte as u8) };
        i += 1;
    }
    to
}
