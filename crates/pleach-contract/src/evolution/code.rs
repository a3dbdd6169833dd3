use std::fmt;

use serde::Serialize;

use super::{Effect, Verdict};

macro_rules! codes {
    ($($name:ident $text:literal [$($backward:ident)*] [$($forward:ident)*] [$($verdict:ident)*] $meaning:literal,)*) => {
        /// What kind of change a finding is. Codes are API: they keep their names and meanings.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum FindingCode {
            $(#[doc = $meaning] $name,)*
        }

        impl FindingCode {
            /// All codes, in the order of the reference.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The code as it is printed.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// What has changed, in a sentence.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning,)* }
            }

            /// What it can do to stored values.
            #[must_use]
            pub fn backward(self) -> &'static [Effect] {
                match self { $(Self::$name => &[$(Effect::$backward,)*],)* }
            }

            /// What it can do to readers of the old contract.
            #[must_use]
            pub fn forward(self) -> &'static [Effect] {
                match self { $(Self::$name => &[$(Effect::$forward,)*],)* }
            }

            /// What it can be, all in all.
            #[must_use]
            pub fn verdicts(self) -> &'static [Verdict] {
                match self { $(Self::$name => &[$(Verdict::$verdict,)*],)* }
            }
        }
    };
}

// Of several effects, which one it is depends on the model (open or closed) and on what else the schema says.
codes! {
    SchemaAnnotation "schema.annotation" [Ok] [Ok] [Safe] "A title, a description or another annotation was changed.",
    SchemaDefault "schema.default" [Ok] [Ok] [Safe] "A `default` was changed. Nothing fills it in when values are read.",
    SchemaIdle "schema.idle" [Ok] [Ok] [Safe] "A keyword was changed that has nothing to say about the values there are.",
    SchemaAllowed "schema.allowed" [Ok] [Breaks] [Safe] "Something is allowed where nothing was.",
    SchemaForbidden "schema.forbidden" [Scan] [Ok] [Scan] "Nothing is allowed any more where something was.",
    SchemaUndecided "schema.undecided" [Unknown] [Unknown] [Scan] "The change cannot be judged from the schemas, or judging it would take more than `DIFF_STEPS_MAX`.",
    TypeWidened "type.widened" [Ok] [Breaks] [Safe Dangerous] "More types are allowed; dangerous if an index takes a segment of its keys from there.",
    TypeNarrowed "type.narrowed" [Scan] [Ok] [Scan] "Fewer types are allowed.",
    TypeChanged "type.changed" [Scan Breaks] [Breaks] [Scan Dangerous] "Other types are allowed; dangerous if none of the old ones is.",
    EnumWidened "enum.widened" [Ok] [Breaks] [Safe] "More values can be chosen from, or any.",
    EnumNarrowed "enum.narrowed" [Scan] [Ok] [Scan] "Fewer values can be chosen from, by `enum` or `const`.",
    EnumChanged "enum.changed" [Scan] [Breaks] [Scan] "Other values can be chosen from, by `enum` or `const`.",
    BoundsLoosened "bounds.loosened" [Ok] [Breaks] [Safe] "A limit was loosened or removed; `uniqueItems` and `multipleOf` are limits too.",
    BoundsTightened "bounds.tightened" [Scan] [Ok] [Scan] "A limit was tightened or added.",
    BoundsChanged "bounds.changed" [Scan] [Breaks] [Scan] "A `multipleOf` was changed to one that is no part of it.",
    PatternAdded "pattern.added" [Scan] [Ok] [Scan] "A `pattern` was added.",
    PatternChanged "pattern.changed" [Scan] [Unknown] [Scan] "A `pattern` was changed.",
    PatternRemoved "pattern.removed" [Ok] [Breaks] [Safe] "A `pattern` was removed.",
    FormatAdded "format.added" [Scan] [Ok] [Scan] "A `format` was added; formats are checked.",
    FormatChanged "format.changed" [Scan] [Unknown] [Scan] "A `format` was changed.",
    FormatRemoved "format.removed" [Ok] [Breaks] [Safe] "A `format` was removed.",
    PropertyAdded "property.added" [Ok Scan] [Ok Breaks] [Safe Scan] "A property was added. In a closed model nobody has it yet; in an open one someone may.",
    PropertyRemoved "property.removed" [Ok Scan] [Ok Unknown Breaks] [Scan] "A property was removed: see who has it. In a closed model those are refused.",
    PropertyRenamed "property.renamed" [Breaks] [Breaks] [Dangerous] "A property seems to have another name now: what is stored under the old one is not found.",
    PropertyReused "property.reused" [Breaks] [Breaks] [Dangerous] "The name of a property that was removed earlier is used again, for something else.",
    PropertyReturned "property.returned" [Scan] [Ok] [Scan] "A property that was removed earlier is back as it was: values may still have it.",
    RequiredAdded "required.added" [Scan] [Ok] [Scan] "A property must be there.",
    RequiredRemoved "required.removed" [Ok] [Breaks] [Safe] "A property need not be there any more.",
    AdditionalClosed "additional.closed" [Scan] [Ok] [Scan] "Properties that the schema does not name are refused.",
    AdditionalNarrowed "additional.narrowed" [Scan] [Ok] [Scan] "Properties that the schema does not name must be of a form.",
    AdditionalOpened "additional.opened" [Ok] [Breaks] [Safe] "Properties that the schema does not name are allowed, or may be anything.",
    PatternPropertyAdded "patternProperty.added" [Ok Scan] [Ok Breaks] [Safe Scan] "Properties whose names match a pattern must be of a form.",
    PatternPropertyRemoved "patternProperty.removed" [Ok Scan] [Ok Breaks] [Safe Scan] "Properties whose names match a pattern are like any other.",
    DependentAdded "dependent.added" [Scan] [Ok] [Scan] "A property must be there if another one is.",
    DependentRemoved "dependent.removed" [Ok] [Breaks] [Safe] "A property need not be there any more if another one is.",
    ConditionAdded "condition.added" [Scan] [Ok] [Scan] "A further condition: in `allOf`, or a new `anyOf`, `oneOf`, `not`, `if`, `contains` or `$ref`.",
    ConditionRemoved "condition.removed" [Ok] [Breaks] [Safe] "A condition less.",
    BranchAdded "branch.added" [Ok] [Breaks] [Safe Dangerous] "`anyOf` has one branch more; dangerous if an index takes a segment of its keys from there.",
    BranchRemoved "branch.removed" [Scan] [Ok] [Scan] "`anyOf` has one branch less.",
    ChoiceAdded "choice.added" [Ok Scan] [Breaks] [Safe Scan] "`oneOf` has one branch more; safe if no value can fit two of them.",
    ChoiceRemoved "choice.removed" [Scan] [Ok Breaks] [Scan] "`oneOf` has one branch less.",
    NotChanged "not.changed" [Ok Unknown Scan Breaks] [Ok Unknown Breaks] [Safe Scan Dangerous] "What `not` forbids has changed.",
    ContractId "contract.id" [Breaks] [Breaks] [Dangerous] "The id is another: it is another lineage, with stores of its own.",
    ContractKind "contract.kind" [Ok Breaks] [Ok] [Safe Dangerous] "The kind of program is another; dangerous if there is state, which belongs to users or to devices.",
    ContractProse "contract.prose" [Ok] [Ok] [Safe] "A text for people was changed.",
    StateAdded "state.added" [Ok] [Ok] [Safe] "A state store was added.",
    StateRemoved "state.removed" [Breaks] [Ok] [Dangerous] "A state store was removed.",
    StateRenamed "state.renamed" [Breaks] [Breaks] [Dangerous] "A state store seems to have another name now: it begins empty.",
    StateKind "state.kind" [Breaks] [Breaks] [Dangerous] "A state store of one value became one of many, or the other way round: entries have other keys.",
    ResourceAdded "resource.added" [Ok] [Ok] [Safe] "A KV resource was added.",
    ResourceRemoved "resource.removed" [Breaks] [Breaks] [Dangerous] "A KV resource was removed: programs with the old contract cannot bind it.",
    ResourceRenamed "resource.renamed" [Breaks] [Breaks] [Dangerous] "A KV resource seems to have another alias now: its bucket begins empty.",
    ResourceRequired "resource.required" [Ok] [Ok] [Safe] "`required` was changed: it is provisioned either way.",
    HistoryRaised "history.raised" [Ok] [Ok] [Safe] "More records of a key are kept.",
    HistoryLowered "history.lowered" [Breaks] [Ok] [Dangerous] "Fewer records of a key are kept: older ones are trimmed.",
    TtlRaised "ttl.raised" [Ok] [Ok] [Safe] "Values live longer, or for ever: see what you promised about keeping them.",
    TtlLowered "ttl.lowered" [Breaks Ok] [Ok] [Dangerous Safe] "Values live shorter, or not for ever any more: older ones expire at once. That of a keyspace concerns later values only.",
    SizeRaised "size.raised" [Ok] [Ok] [Safe] "Larger values are taken.",
    SizeLowered "size.lowered" [Breaks] [Ok] [Dangerous] "Larger values are not taken any more.",
    KeyspaceAdded "keyspace.added" [Ok] [Ok] [Safe] "A keyspace was added.",
    KeyspaceRemoved "keyspace.removed" [Breaks] [Breaks] [Dangerous] "A keyspace was removed: its keys are outside of every grammar.",
    KeyspaceRenamed "keyspace.renamed" [Ok Scan] [Breaks] [Safe Scan] "A keyspace has another name now; scanned if that one does not take all its keys. Programs with the old contract cannot bind the old name.",
    KeyspaceSplit "keyspace.split" [Scan] [Breaks] [Scan] "Several keyspaces take the keys of one: its values are checked by the keyspaces that take their keys.",
    KeyspaceMerged "keyspace.merged" [Scan] [Breaks] [Scan] "One keyspace takes the keys of several: their values are checked by the keyspace that takes their keys.",
    KeyspacesDeclared "keyspaces.declared" [Scan] [Ok] [Scan] "Keys that could be anything must follow a grammar.",
    KeyspacesDropped "keyspaces.dropped" [Ok] [Breaks] [Safe] "Keys need not follow a grammar any more.",
    KeyNarrowed "key.narrowed" [Scan] [Ok] [Scan] "A segment of the key takes less than before.",
    KeyWidened "key.widened" [Ok] [Breaks] [Safe] "A segment of the key takes more than before.",
    KeyNamed "key.named" [Ok] [Ok] [Safe] "A segment of the key has another name: keys stay as they are.",
    KeyChanged "key.changed" [Breaks] [Breaks] [Dangerous] "Segments were added, removed, reordered or are written another way: every entry needs another key.",
    RoleChanged "role.changed" [Breaks] [Breaks] [Dangerous] "A source became derived, or a derived keyspace a source.",
    RoleSources "role.sources" [Breaks] [Ok] [Dangerous] "A derived keyspace is built from others: what is in it is stale until it is rebuilt.",
    RetentionAdded "retention.added" [Breaks] [Ok] [Dangerous] "Old keys are removed from now on.",
    RetentionLowered "retention.lowered" [Breaks] [Ok] [Dangerous] "Old keys are removed sooner.",
    RetentionRaised "retention.raised" [Ok] [Ok] [Safe] "Old keys are kept longer, or for ever.",
    RetentionChanged "retention.changed" [Breaks] [Ok] [Dangerous] "Old keys are counted another way.",
    AccessAdded "access.added" [Ok] [Ok] [Safe] "An access path was added.",
    AccessChanged "access.changed" [Ok] [Ok] [Safe] "An access path was changed.",
    AccessRemoved "access.removed" [Ok] [Ok] [Safe] "An access path was removed.",
    VersionRaised "version.raised" [Ok] [Breaks] [Safe] "Another version is written, and the old one can still be read.",
    VersionUnaccepted "version.unaccepted" [Breaks] [Breaks] [Dangerous] "Another version is written, and the old one cannot be read any more.",
    VersionAccepted "version.accepted" [Ok] [Ok] [Safe] "A further older version can be read.",
    VersionDropped "version.dropped" [Scan] [Ok] [Scan] "An older version cannot be read any more: entries may still carry it.",
    IndexAdded "index.added" [Ok] [Ok] [Safe] "An index was added: it is only written until it is built.",
    IndexUnique "index.unique" [Scan] [Ok] [Scan] "An index is to be unique: entries may share a key of it.",
    IndexRelaxed "index.relaxed" [Ok] [Breaks] [Safe] "An index is not unique any more.",
    IndexLag "index.lag" [Ok] [Ok] [Safe] "How far an index may be behind was changed.",
    IndexChanged "index.changed" [Breaks] [Breaks] [Dangerous] "An index has other keys: its readers find nothing until it is rebuilt.",
    IndexRemoved "index.removed" [Ok] [Breaks] [Dangerous] "An index was removed: its readers find nothing. It can be rebuilt.",
    RelationshipAdded "relationship.added" [Ok] [Ok] [Safe] "A relationship was added.",
    RelationshipChanged "relationship.changed" [Breaks] [Breaks] [Dangerous] "The links of a relationship have other keys, or other ends.",
    RelationshipDelete "relationship.delete" [Ok] [Ok] [Safe] "What happens to the links of what is deleted was changed.",
    RelationshipRemoved "relationship.removed" [Breaks] [Breaks] [Dangerous] "A relationship was removed, and nothing else knows its links.",
    CounterAdded "counter.added" [Ok] [Ok] [Safe] "A counter was added: it is only written until everything is counted.",
    CounterShards "counter.shards" [Ok] [Ok] [Safe] "A counter has more parts.",
    CounterChanged "counter.changed" [Breaks] [Breaks] [Dangerous] "A counter counts something else, or has other keys or fewer parts: it is wrong until it is rebuilt.",
    CounterRemoved "counter.removed" [Ok] [Breaks] [Dangerous] "A counter was removed: its readers find nothing. It can be rebuilt.",
    AtomicTightened "atomic.tightened" [Ok] [Ok] [Safe] "More is committed together.",
    AtomicLoosened "atomic.loosened" [Ok] [Breaks] [Safe] "Less is committed together: readers may see one part without the other.",
}

impl fmt::Display for FindingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for FindingCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
