use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A way to a server on loopback that can be cut, mended and made to pass on nothing that the server says. Clients connect to it as if it were the server.
#[derive(Debug)]
pub struct Link {
    port: u16,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    is_cut: bool,
    is_silent: bool,
    is_over: bool,
    open: Vec<TcpStream>,
}

impl Link {
    /// A way to the server at `url`.
    pub fn to(url: &str) -> Self {
        let address: SocketAddr =
            url.trim_start_matches("nats://").parse().expect("servers of tests have plain addresses");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has a free port");
        let port = listener.local_addr().expect("it has an address").port();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        start(move || {
            for client in listener.incoming().flatten() {
                if shared.lock().unwrap_or_else(PoisonError::into_inner).is_over {
                    return;
                }
                // A connection that cannot be passed on is closed, as by a server that is away.
                let _ = pass_on(&shared, client, address);
            }
        });
        Self { port, state }
    }

    /// Where to connect to.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Ends every connection, and lets none be made.
    pub fn cut(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_cut = true;
        for stream in state.open.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Loses whatever the server says from now on, while it hears everything.
    pub fn silence(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_silent = true;
    }

    /// Lets connections be made again. Those of before it was silenced are ended: they have lost their place.
    pub fn mend(&self) {
        self.cut();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.is_cut, state.is_silent) = (false, false);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.cut();
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_over = true;
        // So that whoever waits for the next connection notices.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

fn pass_on(shared: &Arc<Mutex<State>>, client: TcpStream, address: SocketAddr) -> io::Result<()> {
    let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
    if state.is_cut {
        return client.shutdown(Shutdown::Both);
    }
    let server = TcpStream::connect(address)?;
    let (to_server, to_client) = (server.try_clone()?, client.try_clone()?);
    state.open.extend([server.try_clone()?, client.try_clone()?]);
    let shared = Arc::clone(shared);
    start(move || copy(client, to_server, || false));
    start(move || {
        copy(server, to_client, || shared.lock().unwrap_or_else(PoisonError::into_inner).is_silent)
    });
    Ok(())
}

fn copy(mut from: TcpStream, mut to: TcpStream, is_silent: impl Fn() -> bool) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if !is_silent() && to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

#[allow(clippy::disallowed_methods, reason = "these threads end with the connections they pass on")]
fn start(job: impl FnOnce() + Send + 'static) {
    thread::spawn(job);
}
