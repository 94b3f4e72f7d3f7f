// Frames as the Rust compiler creates them.
use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;

static ARRIVED: AtomicUsize = AtomicUsize::new(0);
const LIMIT: Duration = Duration::from_secs(900);

#[inline(never)]
fn stay(spins: bool) {
    ARRIVED.fetch_add(1, Ordering::SeqCst);
    if spins {
        unsafe { std::arch::asm!("nop", "2: jmp 2b") };
    }
    thread::sleep(LIMIT);
}

trait Shape {
    fn area(&self, spins: bool) -> u64;
}

struct Square<T>(T);

impl<T: Into<u64> + Copy> Shape for Square<T> {
    #[inline(never)]
    fn area(&self, spins: bool) -> u64 {
        stay(spins);
        self.0.into() * self.0.into()
    }
}

mod inner {
    #[inline(never)]
    pub fn generic<F: FnOnce() -> u64>(call: F) -> u64 {
        call() + 1
    }
}

#[inline(always)]
fn inlined(spins: bool) -> u64 {
    stay(spins);
    3
}

#[inline(never)]
fn in_method(spins: bool) -> u64 {
    let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Square(2u32)), Box::new(Square(3u64))];
    shapes.iter().map(|shape| shape.area(spins)).sum()
}

#[inline(never)]
fn in_closure(spins: bool) -> u64 {
    inner::generic(|| inlined(spins) * 2)
}

#[inline(never)]
fn in_sort(spins: bool) -> u64 {
    let mut numbers: Vec<u64> = (0..40).rev().collect();
    numbers.sort_by(|left, right| {
        stay(spins);
        left.cmp(right)
    });
    numbers[0]
}

struct Guard(bool);

impl Drop for Guard {
    #[inline(never)]
    fn drop(&mut self) {
        stay(self.0);
    }
}

#[inline(never)]
fn in_drop(spins: bool) -> u64 {
    let _ = std::panic::catch_unwind(|| {
        let _guard = Guard(spins);
        std::panic::resume_unwind(Box::new(1));
    });
    1
}

#[inline(never)]
fn in_wait(spins: bool) -> u64 {
    let (mutex, condition) = (Mutex::new(false), Condvar::new());
    if spins {
        stay(spins);
    }
    ARRIVED.fetch_add(1, Ordering::SeqCst);
    let guard = mutex.lock().unwrap();
    let waited = condition.wait_timeout(guard, LIMIT).unwrap();
    *waited.0 as u64
}

fn main() {
    let places: Vec<(&'static str, fn(bool) -> u64)> = vec![
        ("method", in_method),
        ("closure", in_closure),
        ("sort", in_sort),
        ("drop", in_drop),
        ("wait", in_wait),
    ];
    let results = std::sync::Arc::new(Mutex::new(HashMap::new()));
    for (name, enter) in places.iter().copied() {
        for spins in [false, true] {
            let results = results.clone();
            thread::Builder::new()
                .name(format!("{}{}", name, if spins { "+" } else { "" }))
                .spawn(move || {
                    let result = enter(spins);
                    results.lock().unwrap().insert(name, result);
                })
                .unwrap();
        }
    }
    while ARRIVED.load(Ordering::SeqCst) < 2 * places.len() {
        thread::sleep(Duration::from_millis(1));
    }
    println!("ready");
    std::io::stdout().flush().unwrap();
    thread::sleep(LIMIT);
}
