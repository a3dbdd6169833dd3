use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, Ordering};

/// Ports below those that systems give to outgoing connections and to listeners that ask for any port.
const FIRST: u16 = 20_000;
const COUNT: u16 = 10_000;

/// A port on loopback that no other server of any test gets while this exists, also while its own server is down.
///
/// A port that is merely free at the moment can be taken by another process before the server listens on it.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    /// Its lock is the claim. The file stays: removing it would let two processes lock two files of one name.
    _claim: File,
}

impl Port {
    /// Claims a port that nobody listens on.
    pub(crate) fn claim() -> Self {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let claims = claims();
        fs::create_dir_all(&claims).expect("a directory for claims of ports can be made");
        // Processes begin at different places, so that they seldom meet.
        let begin = std::process::id().wrapping_mul(97) % u32::from(COUNT);
        let begin = u16::try_from(begin).unwrap_or_default();
        let candidates = (0..COUNT).map(|_| {
            let step = NEXT.fetch_add(1, Ordering::Relaxed) % COUNT;
            FIRST + (begin + step) % COUNT
        });
        candidates.into_iter().find_map(|number| Self::try_claim(&claims, number)).expect("a port is free")
    }

    fn try_claim(claims: &Path, number: u16) -> Option<Self> {
        let file = File::options().create(true).append(true).open(claims.join(number.to_string())).ok()?;
        file.try_lock().ok()?;
        TcpListener::bind((Ipv4Addr::LOCALHOST, number)).ok()?;
        Some(Self { number, _claim: file })
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }
}

/// Each user has a directory of their own, in which others could not write.
fn claims() -> PathBuf {
    std::env::temp_dir().join(format!("pleach-test-ports-{}", rustix::process::getuid().as_raw()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_claimed_by_one_at_a_time() {
        let one = Port::claim();
        let claims = claims();
        assert!(Port::try_claim(&claims, one.number()).is_none(), "nobody listens on it, and it is claimed");
        let number = one.number();
        drop(one);
        // Another test may be quicker; then it has a claim, and this one none.
        if let Some(again) = Port::try_claim(&claims, number) {
            assert_eq!(again.number(), number);
        }
    }
}
