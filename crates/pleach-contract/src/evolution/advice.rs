use super::{Effect, Finding, FindingCode as Code, Verdict};

/// Why a finding is what it is.
pub(super) fn reason(finding: &Finding) -> String {
    let stored = match finding.backward {
        Effect::Ok => "everything stored is still accepted",
        Effect::Unknown => "whether everything stored is still accepted cannot be told from the contracts",
        Effect::Scan => "something stored may be refused",
        Effect::Breaks => "what is stored is lost, refused or misread",
    };
    let written = match finding.forward {
        Effect::Ok => None,
        Effect::Unknown => {
            Some("whether programs with the old contract accept what is written from now on cannot be told")
        }
        Effect::Scan | Effect::Breaks if unbinds(finding.code) => {
            Some("programs with the old contract cannot bind it any more")
        }
        Effect::Scan | Effect::Breaks => {
            Some("programs with the old contract may refuse or miss what is written from now on")
        }
    };
    let parts = [special(finding), Some(stored).filter(|_| !says_all(finding)), written];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Whether programs with the old contract look for a name that is gone.
fn unbinds(code: Code) -> bool {
    matches!(
        code,
        Code::KeyspaceRemoved
            | Code::KeyspaceRenamed
            | Code::KeyspaceSplit
            | Code::KeyspaceMerged
            | Code::ResourceRemoved
    )
}

/// Whether what is special about a finding leaves nothing to say about what is stored.
fn says_all(finding: &Finding) -> bool {
    matches!(
        finding.code,
        Code::HistoryLowered
            | Code::TtlLowered
            | Code::SizeLowered
            | Code::RetentionAdded
            | Code::RetentionLowered
    )
}

/// What the directions alone do not say.
fn special(finding: &Finding) -> Option<&'static str> {
    Some(match finding.code {
        Code::SchemaDefault => "defaults are not filled in when values are read",
        Code::TypeWidened | Code::BranchAdded if finding.verdict == Verdict::Dangerous => {
            "an index makes keys of this value, and a value of the new type has no place in their order"
        }
        Code::PropertyAdded if finding.backward == Effect::Scan => {
            "an open model lets values have any field, so some may have this one with something else in it"
        }
        Code::PropertyRemoved if finding.backward == Effect::Ok => {
            "values that have it keep it, and nobody looks after it any more"
        }
        Code::ChoiceAdded if finding.backward == Effect::Scan => {
            "a value must fit exactly one branch, and may fit the new one too"
        }
        Code::KeyNamed | Code::KeyspaceRenamed if finding.backward == Effect::Ok => {
            "the name is not a part of the keys"
        }
        Code::KeyspaceSplit | Code::KeyspaceMerged => {
            "entries stay where they are, and belong to the keyspace that takes their key"
        }
        Code::IndexAdded | Code::CounterAdded => "it is built from what is stored before anyone reads it",
        Code::TtlRaised => "values stay longer than was promised before",
        Code::HistoryLowered => "older records of a key are trimmed as soon as it is applied",
        Code::TtlLowered if finding.verdict == Verdict::Safe => {
            "values that are stored keep the time they were given; those written later live shorter"
        }
        Code::TtlLowered => "values that are older are expired as soon as it is applied",
        Code::SizeLowered => "values that are larger stay, and cannot be written again",
        Code::RetentionAdded | Code::RetentionLowered => {
            "what lies further back goes when retention is next kept"
        }
        _ => return None,
    })
}

/// What to do.
pub(super) fn fix(finding: &Finding) -> &'static str {
    match finding.code {
        Code::SchemaAnnotation | Code::SchemaDefault | Code::SchemaIdle | Code::ContractProse => "nothing",
        Code::KeyChanged | Code::StateKind => {
            "declare the new form beside the old one, copy the entries under their new keys, move the readers, then remove the old one"
        }
        Code::PropertyRenamed => {
            "keep the old name; or raise the version, accept the old one, and migrate the entries"
        }
        Code::PropertyReused => "choose another name, or remove the old values of this field first",
        Code::StateRemoved | Code::ResourceRemoved | Code::KeyspaceRemoved | Code::RelationshipRemoved => {
            "keep it until its entries are moved or nobody needs them, and acknowledge that they are lost"
        }
        Code::StateRenamed | Code::ResourceRenamed => {
            "keep the old name; or declare both, copy the entries, and then remove the old one"
        }
        Code::ContractId => "compare it with a contract of the same id",
        Code::TtlLowered if finding.verdict == Verdict::Safe => "nothing",
        Code::HistoryLowered
        | Code::TtlLowered
        | Code::RetentionAdded
        | Code::RetentionLowered
        | Code::RetentionChanged => {
            "keep the old limit, or acknowledge that what lies beyond the new one goes"
        }
        Code::SizeLowered => "keep the old limit, or make the values that are larger smaller first",
        Code::VersionUnaccepted => "list the old version under `acceptedVersions` with its schema",
        Code::VersionDropped => "migrate the entries that still carry it, then drop it",
        Code::IndexUnique => "of the entries that share a key of the index, change all but one first",
        Code::KeyspaceRenamed | Code::KeyspaceSplit | Code::KeyspaceMerged
            if finding.verdict == Verdict::Safe =>
        {
            "update the programs together with it: those with the old contract stop working when it is applied"
        }
        Code::KeyspaceRenamed | Code::KeyspaceSplit | Code::KeyspaceMerged => {
            "declare keyspaces for the keys that none takes, correct the values that are refused, and update the programs together with it"
        }
        Code::IndexChanged | Code::CounterChanged => {
            "declare a new one beside it, build it, move the readers, then remove the old one"
        }
        Code::IndexRemoved | Code::CounterRemoved => "remove it when nothing reads it any more",
        Code::RelationshipChanged => {
            "declare a new one beside it, copy the links, move the readers, then remove the old one"
        }
        Code::RoleChanged => "declare a new keyspace with the other role, and move the entries",
        Code::RoleSources => "rebuild it before anyone reads it",
        _ => by_verdict(finding),
    }
}

fn by_verdict(finding: &Finding) -> &'static str {
    match (finding.verdict, finding.forward) {
        (Verdict::Safe, Effect::Ok) => "nothing",
        (Verdict::Safe, _) => "update the programs that read before those that write",
        (Verdict::Scan, _) => {
            "correct the values that stand against it first, or raise the version and accept the old one; without any, it is safe"
        }
        (Verdict::Dangerous, _) => "raise the version, accept the old one, and migrate the entries",
    }
}
