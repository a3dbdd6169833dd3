use std::collections::BTreeMap;

use tempfile::TempDir;

use crate::link::Link;
use crate::port::Port;
use crate::server::{Node, Settings, until};

/// Servers that know each other and share JetStream.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Node>,
    /// The ways between them that can be cut, by who goes to whom.
    ways: BTreeMap<(usize, usize), Link>,
    /// Where they listen for each other.
    _routes: Vec<Port>,
    _directory: TempDir,
}

impl Cluster {
    /// Starts three, and waits until they have agreed on a leader.
    pub fn start() -> Self {
        Self::start_with(3, Settings::default())
    }

    /// Starts three, between any two of which the way can be cut.
    pub fn start_severable() -> Self {
        Self::start_on(3, Settings::default(), true)
    }

    /// Starts `size` of them, with the same special about each.
    pub fn start_with(size: usize, settings: Settings<'_>) -> Self {
        Self::start_on(size, settings, false)
    }

    fn start_on(size: usize, settings: Settings<'_>, is_severable: bool) -> Self {
        let directory = TempDir::new().expect("a temporary directory can be made");
        let claimed: Vec<Port> = (0..size).map(|_| Port::claim()).collect();
        let routes: Vec<u16> = claimed.iter().map(Port::number).collect();
        let address = |port: &u16| format!("nats://127.0.0.1:{port}");
        let pairs = (0..size).flat_map(|from| (0..size).map(move |to| (from, to)));
        let pairs = pairs.filter(|(from, to)| is_severable && from != to);
        let ways: BTreeMap<_, _> =
            pairs.map(|(from, to)| ((from, to), Link::to(&address(&routes[to])))).collect();
        let start = |(index, route): (usize, &u16)| {
            let others = (0..size).filter(|other| *other != index);
            let known = |other| ways.get(&(index, other)).map_or_else(|| address(&routes[other]), Link::url);
            let known: Vec<String> = others.map(|other| format!("{:?}", known(other))).collect();
            // Servers tell each other where others are, which would be a way around one that is cut.
            let advertised = if is_severable { "advertise: \"127.0.0.1:1\"," } else { "" };
            let cluster = format!(
                "cluster {{ name: test, listen: \"127.0.0.1:{route}\", {advertised} routes: [{}] }}\n{}",
                known.join(", "),
                settings.more
            );
            let settings = Settings { more: &cluster, ..settings };
            Node::start(directory.path(), &format!("node-{index}"), Port::claim(), settings)
        };
        let nodes: Vec<Node> = routes.iter().enumerate().map(start).collect();
        nodes.iter().for_each(Node::wait);
        let led = || nodes.iter().all(|node| node.log().contains("metadata leader"));
        until(led, || format!("the servers do not agree on a leader:\n{}", nodes[0].log()));
        Self { nodes, ways, _routes: claimed, _directory: directory }
    }

    /// How many servers there are.
    pub fn size(&self) -> usize {
        self.nodes.len()
    }

    /// The name that a server says it has.
    pub fn name(&self, index: usize) -> String {
        format!("node-{index}")
    }

    /// Where each takes connections.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(Node::url).collect()
    }

    /// Kills one as a crash does.
    pub fn kill(&mut self, index: usize) {
        self.nodes[index].kill();
    }

    /// Starts one again where it was, and waits until it takes connections.
    pub fn restart(&mut self, index: usize) {
        self.nodes[index].restart();
        self.nodes[index].wait();
    }

    /// Stops one without its noticing, as a machine that hangs does.
    pub fn stop(&self, index: usize) {
        self.nodes[index].stop();
    }

    /// Cuts the way between two, if it can be. Clients reach both all the same.
    pub fn sever(&self, one: usize, other: usize) {
        self.between(one, other).for_each(Link::cut);
    }

    /// Mends the way between two.
    pub fn join(&self, one: usize, other: usize) {
        self.between(one, other).for_each(Link::mend);
    }

    fn between(&self, one: usize, other: usize) -> impl Iterator<Item = &Link> {
        [(one, other), (other, one)].into_iter().filter_map(|pair| self.ways.get(&pair))
    }

    /// Lets one go on.
    pub fn go_on(&self, index: usize) {
        self.nodes[index].go_on();
    }
}
