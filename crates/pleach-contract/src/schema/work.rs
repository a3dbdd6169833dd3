use super::budget::VALUE_DEPTH_MAX;
use super::graph::{Graph, Node};

/// How much one value may take to check, as far as its size, its depth and the schema foretell. A unit is one evaluation of a
/// subschema at one place, one comparison of a place with another value, or reading `BYTES_PER_UNIT` bytes of text.
pub const WORK_MAX: u64 = 200_000_000;

/// How many bytes of text are read at the cost of an evaluation.
pub(super) const BYTES_PER_UNIT: u64 = 64;

/// The most work that checking a value can take, for each depth of the value.
///
/// The validator may stop early; what is counted is what happens if it never does. So the count is an upper bound: in place,
/// numbers add up; of fields and items, the worst is taken.
#[derive(Debug)]
pub(super) struct Work {
    by_depth: Vec<Units>,
}

/// What is known of a value before it is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    /// How many values there are in it, itself included.
    pub(super) places: u64,
    /// The bytes of its texts and of the names of its fields.
    pub(super) bytes: u64,
    /// How many objects and lists are nested in each other: 0 for a number.
    pub(super) depth: usize,
}

/// What any one place, and any one byte, can take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Units {
    place: u64,
    /// In parts of [`BYTES_PER_UNIT`].
    byte: u64,
    violations: u64,
}

impl Units {
    const ONE: Self = Self { place: 1, byte: 0, violations: 0 };

    fn and(self, other: Self) -> Self {
        Self {
            place: self.place.saturating_add(other.place),
            byte: self.byte.saturating_add(other.byte),
            violations: self.violations.saturating_add(other.violations),
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            place: self.place.max(other.place),
            byte: self.byte.max(other.byte),
            violations: self.violations.max(other.violations),
        }
    }
}

/// What one node can take at one depth: at the place itself, and at each field and item below it.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    here: Units,
    fields: Units,
    items: Units,
}

impl Cost {
    fn total(self) -> Units {
        self.here.and(self.fields.or(self.items))
    }

    fn and(self, other: Self) -> Self {
        Self {
            here: self.here.and(other.here),
            fields: self.fields.and(other.fields),
            items: self.items.and(other.items),
        }
    }
}

impl Work {
    /// `order` has those evaluated in place before those that lead to them.
    pub(super) fn of(graph: &Graph, order: &[usize]) -> Self {
        let mut below = vec![Units::default(); graph.nodes.len()];
        let mut by_depth = Vec::with_capacity(VALUE_DEPTH_MAX + 1);
        for _ in 0..=VALUE_DEPTH_MAX {
            let mut costs = vec![Cost::default(); graph.nodes.len()];
            let mut marks = costs.clone();
            for &index in order {
                let node = &graph.nodes[index];
                marks[index] = marking(node, &costs, &marks, &below);
                costs[index] = cost(node, &costs, marks[index], &below);
            }
            let totals: Vec<Units> = costs.into_iter().map(Cost::total).collect();
            by_depth.push(totals[0]);
            // Nothing grows any more: deeper values take no more either.
            if totals == below {
                break;
            }
            below = totals;
        }
        Self { by_depth }
    }

    /// The most work that a value of this size can take.
    pub(super) fn units(&self, size: Size) -> u64 {
        let Units { place, byte, .. } = self.at(size.depth);
        let of_texts = size.bytes.saturating_mul(byte) / BYTES_PER_UNIT;
        size.places.saturating_mul(place).saturating_add(of_texts)
    }

    /// The most violations that a value of this size can have.
    pub(super) fn violations(&self, size: Size) -> u64 {
        size.places.saturating_mul(self.at(size.depth).violations)
    }

    fn at(&self, depth: usize) -> Units {
        self.by_depth.get(depth).or(self.by_depth.last()).copied().unwrap_or_default()
    }
}

fn cost(node: &Node, costs: &[Cost], mark: Cost, below: &[Units]) -> Cost {
    let most = |nodes: &[usize]| nodes.iter().fold(Units::default(), |most, index| most.or(below[*index]));
    let here = Units { place: node.weight.place, byte: node.weight.byte, violations: node.weight.violations };
    let own = Cost {
        here,
        // Each field and item is found, even if nothing looks at it.
        fields: Units::ONE.and(most(&node.named)).and(sum(&node.fields, below)),
        items: Units::ONE.and(most(&node.placed)).and(sum(&node.items, below)),
    };
    let all = node.in_place.iter().fold(own, |all, index| all.and(costs[*index]));
    if node.unevaluated { all.and(mark) } else { all }
}

/// What it takes to find which fields and items a node has looked at: every branch is evaluated again, and then asked the same.
fn marking(node: &Node, costs: &[Cost], marks: &[Cost], below: &[Units]) -> Cost {
    let own = Cost {
        here: Units { place: 1, byte: node.weight.byte, violations: 0 },
        fields: Units::ONE.and(sum(&node.fields, below)),
        items: Units::ONE.and(sum(&node.items, below)),
    };
    node.in_place.iter().fold(own, |all, index| all.and(costs[*index]).and(marks[*index]))
}

fn sum(nodes: &[usize], below: &[Units]) -> Units {
    nodes.iter().fold(Units::default(), |sum, index| sum.and(below[*index]))
}
