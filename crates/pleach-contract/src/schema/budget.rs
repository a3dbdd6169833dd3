use super::graph::{Graph, Node};
use crate::problem::{Code, Problem};
use crate::strict::JSON_DEPTH_MAX;

/// How many subschemas may look at one place of a value that is nested four levels deep.
pub const EVALUATIONS_MAX: u64 = 10_000;

/// How many objects and lists of a value may be nested in each other: as many as in its text, so that what is accepted can be
/// read again.
pub const VALUE_DEPTH_MAX: usize = JSON_DEPTH_MAX;

/// The depth at which a schema is judged without a value.
const SHALLOW_DEPTH: usize = 4;

/// What one node can take at one depth.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    here: u64,
    fields: u64,
    items: u64,
}

impl Cost {
    fn total(self) -> u64 {
        self.here.saturating_add(self.fields.max(self.items))
    }

    fn add(&mut self, other: Self) {
        self.here = self.here.saturating_add(other.here);
        self.fields = self.fields.saturating_add(other.fields);
        self.items = self.items.saturating_add(other.items);
    }

    fn doubled(mut self) -> Self {
        self.add(self);
        self
    }
}

/// Refuses a schema that takes too much of any value, and gives the order in which [`super::work::Work`] counts.
///
/// A schema whose references fan out evaluates the same place twice as often with every step. So the most that can happen is
/// counted beforehand: in place, numbers add up; of fields and items, the worst is taken.
pub(super) fn check(graph: &Graph) -> Result<Vec<usize>, Vec<Problem>> {
    let order = inner_first(&graph.nodes)?;
    let mut below = vec![0; graph.nodes.len()];
    for _ in 0..=SHALLOW_DEPTH {
        let mut costs = vec![Cost::default(); graph.nodes.len()];
        for &index in &order {
            costs[index] = cost(&graph.nodes[index], &costs, &below);
        }
        below = costs.into_iter().map(Cost::total).collect();
    }
    let shallow = below[0];
    if shallow > EVALUATIONS_MAX {
        let message = format!(
            "one place of a small value could take {shallow} evaluations, the most is {EVALUATIONS_MAX}"
        );
        let fix = "refer to each part once, and tell the branches of `anyOf` and `oneOf` apart by a `const`";
        return Err(vec![Problem::new(Code::SchemaBudget, "", message, fix)]);
    }
    Ok(order)
}

fn cost(node: &Node, costs: &[Cost], below: &[u64]) -> Cost {
    let sum = |nodes: &[usize]| nodes.iter().fold(0_u64, |sum, index| sum.saturating_add(below[*index]));
    let most = |nodes: &[usize]| nodes.iter().map(|index| below[*index]).max().unwrap_or(0);
    let mut cost = Cost {
        here: 1,
        fields: most(&node.named).saturating_add(sum(&node.fields)),
        items: most(&node.placed).saturating_add(sum(&node.items)),
    };
    for index in &node.in_place {
        cost.add(costs[*index]);
    }
    if node.unevaluated { cost.doubled() } else { cost }
}

/// The nodes in an order in which those evaluated in place come before those that lead to them.
fn inner_first(nodes: &[Node]) -> Result<Vec<usize>, Vec<Problem>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; nodes.len()];
    let mut order = Vec::with_capacity(nodes.len());
    for start in 0..nodes.len() {
        // A stack of its own, as a chain of references may be long: a node, and how many of its children were seen.
        let mut stack = vec![(start, 0)];
        while let Some((index, seen)) = stack.pop() {
            if seen == 0 {
                if marks[index] == Mark::Done {
                    continue;
                }
                marks[index] = Mark::Open;
            }
            let Some(&next) = nodes[index].in_place.get(seen) else {
                marks[index] = Mark::Done;
                order.push(index);
                continue;
            };
            stack.push((index, seen + 1));
            match marks[next] {
                Mark::New => stack.push((next, 0)),
                Mark::Done => {}
                Mark::Open => {
                    let message = "this leads back to itself, and would never end";
                    let fix = "let the way lead through `properties` or `items`, or break the circle";
                    return Err(vec![Problem::new(
                        Code::SchemaLoop,
                        nodes[index].path.clone(),
                        message,
                        fix,
                    )]);
                }
            }
        }
    }
    Ok(order)
}
