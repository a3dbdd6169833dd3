use tempfile::TempDir;

use crate::server::{Node, Settings, free_port, until};

/// Servers that know each other and share JetStream.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Node>,
    _directory: TempDir,
}

impl Cluster {
    /// Starts three, and waits until they have agreed on a leader.
    pub fn start() -> Self {
        Self::start_with(3, Settings::default())
    }

    /// Starts `size` of them, with the same special about each.
    pub fn start_with(size: usize, settings: Settings<'_>) -> Self {
        let directory = TempDir::new().expect("a temporary directory can be made");
        let routes: Vec<u16> = (0..size).map(|_| free_port()).collect();
        let known: Vec<String> = routes.iter().map(|port| format!("\"nats://127.0.0.1:{port}\"")).collect();
        let start = |(index, route): (usize, &u16)| {
            let cluster = format!(
                "cluster {{ name: test, listen: \"127.0.0.1:{route}\", routes: [{}] }}\n{}",
                known.join(", "),
                settings.more
            );
            let settings = Settings { more: &cluster, ..settings };
            Node::start(directory.path(), &format!("node-{index}"), free_port(), settings)
        };
        let nodes: Vec<Node> = routes.iter().enumerate().map(start).collect();
        nodes.iter().for_each(Node::wait);
        let led = || nodes.iter().any(|node| node.log().contains("metadata leader"));
        until(led, || format!("the servers do not agree on a leader:\n{}", nodes[0].log()));
        Self { nodes, _directory: directory }
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

    /// Lets one go on.
    pub fn go_on(&self, index: usize) {
        self.nodes[index].go_on();
    }
}
