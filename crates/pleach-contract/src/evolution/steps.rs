/// How many subschemas, properties and other parts one diff looks at. What it cannot look at is to be scanned.
pub const DIFF_STEPS_MAX: usize = 250_000;

/// What is left of the budget of a diff.
#[derive(Debug)]
pub(super) struct Steps {
    left: usize,
}

impl Steps {
    pub(super) fn new() -> Self {
        Self { left: DIFF_STEPS_MAX }
    }

    pub(super) fn spend(&mut self, count: usize) {
        self.left = self.left.saturating_sub(count);
    }

    pub(super) fn are_spent(&self) -> bool {
        self.left == 0
    }
}
