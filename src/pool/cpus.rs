//! How many threads are worth starting.

use std::collections::BTreeSet;
use std::path::Path;

/// The number of threads that can run at full speed at the same time: physical cores in
/// this thread's affinity mask, but no more than the CPU quota of the process's control
/// groups (version 1 or 2, rounded down); at least 1.
pub fn default_threads() -> usize {
    // The standard library counts CPUs in the mask and respects both kinds of quota.
    let usable = std::thread::available_parallelism().map_or(1, |n| n.get());
    let cores = physical_cores(&affinity(), Path::new("/sys/devices/system/cpu"));
    usable.min(cores.unwrap_or(usable)).max(1)
}

/// The CPUs this thread may run on; empty if the system does not say.
fn affinity() -> Vec<usize> {
    // SAFETY: the set is plain data, written by the call up to the given size; `CPU_ISSET`
    // stays within it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return Vec::new();
        }
        (0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &set)).collect()
    }
}

/// Distinct cores among `cpus`, two hardware threads of one core counting once; `None`
/// if the system does not describe its cores.
fn physical_cores(cpus: &[usize], directory: &Path) -> Option<usize> {
    let mut cores = BTreeSet::new();
    for cpu in cpus {
        let siblings = directory.join(format!("cpu{cpu}/topology/thread_siblings_list"));
        cores.insert(std::fs::read_to_string(siblings).ok()?);
    }
    (!cores.is_empty()).then_some(cores.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_counted() {
        let count = default_threads();
        assert!((1..=affinity().len().max(1)).contains(&count));
    }

    #[test]
    fn two_hardware_threads_count_as_one_core() {
        let directory = std::env::temp_dir().join(format!("qwen35-cpus-{}", std::process::id()));
        for (cpu, siblings) in ["0,2", "1,3", "0,2", "1,3"].iter().enumerate() {
            let topology = directory.join(format!("cpu{cpu}/topology"));
            std::fs::create_dir_all(&topology).unwrap();
            std::fs::write(topology.join("thread_siblings_list"), siblings).unwrap();
        }
        assert_eq!(physical_cores(&[0, 1, 2, 3], &directory), Some(2));
        assert_eq!(physical_cores(&[0, 2], &directory), Some(1));
        assert_eq!(physical_cores(&[0, 9], &directory), None);
        assert_eq!(physical_cores(&[], &directory), None);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
