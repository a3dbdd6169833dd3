/// Numbers that decide what is made. When they are used up all are zero, which is always the simplest choice: so a
/// failing case shrinks with its list.
#[derive(Debug)]
pub(super) struct Choices {
    list: Vec<u16>,
    at: usize,
    /// What follows when the list is at its end, so that values can still be made.
    state: u64,
}

impl Choices {
    pub(super) fn new(list: Vec<u16>) -> Self {
        let state =
            list.iter().fold(1, |state: u64, number| state.wrapping_mul(31).wrapping_add(u64::from(*number)));
        Self { list, at: 0, state }
    }

    fn next(&mut self) -> u16 {
        let number = self.list.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        number
    }

    /// A number below `count`, which is not zero.
    pub(super) fn below(&mut self, count: usize) -> usize {
        usize::from(self.next()) % count
    }

    /// Yes in so many of a hundred cases.
    pub(super) fn chance(&mut self, percent: u16) -> bool {
        self.next() % 100 >= 100 - percent
    }

    pub(super) fn one_of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }

    /// Choices that never end, for values: these need not shrink.
    pub(super) fn endless(&mut self) -> Self {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut state = self.state;
        let mut list = Vec::with_capacity(256);
        for _ in 0..256 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            list.push(u16::try_from(state >> 48).unwrap_or(0));
        }
        Self { list, at: 0, state }
    }
}
