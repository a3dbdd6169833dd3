/// Lines of code.
#[derive(Debug, Default)]
pub(super) struct Source {
    text: String,
    depth: usize,
}

impl Source {
    /// A line; an empty one is not indented.
    pub(super) fn line(&mut self, line: &str) {
        if !line.is_empty() {
            self.text.push_str(&"    ".repeat(self.depth));
            self.text.push_str(line);
        }
        self.text.push('\n');
    }

    /// A line that opens a block.
    pub(super) fn open(&mut self, line: &str) {
        self.line(line);
        self.depth += 1;
    }

    /// A line that closes one.
    pub(super) fn close(&mut self, line: &str) {
        self.depth -= 1;
        self.line(line);
    }

    /// A comment for documentation; each line of it is one, so that nothing can get out of it.
    pub(super) fn doc(&mut self, text: &str) {
        for line in text.trim().split(['\n', '\r']) {
            self.line(format!("/// {}", line.trim()).trim_end());
        }
    }

    pub(super) fn append(&mut self, other: Self) {
        self.text.push_str(&other.text);
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}
