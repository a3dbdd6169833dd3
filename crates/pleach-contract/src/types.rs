use crate::builder::ContractBuilder;
use crate::document::Parsed;
use crate::problem::Problems;

/// A Rust type that stands for a contract: what `#[derive(Contract)]` implements.
pub trait ContractType {
    /// The contract as it is said, to which more can be added.
    fn builder() -> ContractBuilder;

    /// The contract, read and checked. A test that calls this finds at build time what else would be found at the start.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it.
    fn contract() -> Result<Parsed, Problems> {
        Self::builder().build()
    }
}

/// A Rust type that stands for a KV resource: what `#[derive(Resource)]` implements.
pub trait ResourceType {
    /// Adds the resource to a contract under an alias, with the schemas of its values.
    #[must_use]
    fn declare(builder: ContractBuilder, alias: &str) -> ContractBuilder;
}
