use pleach::contract::key::Value as Segment;
use serde::{Deserialize, Serialize};

/// A case as the first contract has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CaseV1 {
    pub(super) title: String,
    pub(super) status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) assignee: Option<String>,
    pub(super) opened_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) notes: Option<String>,
}

/// A case as the second contract has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Case {
    pub(super) title: String,
    pub(super) status: Status,
    pub(super) owner: String,
    pub(super) opened_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) notes: Option<String>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Open,
    Waiting,
    Closed,
}

const TENANTS: [&str; 5] = ["acme", "globex", "initech", "stark", "umbrella"];
const PEOPLE: [&str; 6] = ["ann", "ben", "chi", "dev", "eve", "finn"];
const SUBJECTS: [&str; 7] = [
    "printer on fire",
    "lost parcel",
    "wrong invoice",
    "cannot log in",
    "broken link",
    "slow page",
    "late refund",
];

/// The key of a case: a tenant, and a ULID that is made of its number, so that every run tells the same story.
pub(super) fn key(number: u64) -> [Segment<'static>; 2] {
    let tenant = TENANTS[usize::try_from(number % TENANTS.len() as u64).unwrap_or(0)];
    // Some day of 2024, a minute apart; the rest is the number once more, well mixed.
    let time = 1_704_067_200_000 + u128::from(number) * 60_000;
    let rest = u128::from(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) << 16 | u128::from(number & 0xffff);
    [tenant.into(), Segment::Ulid((time << 80) | rest)]
}

/// A case as it was written before anyone thought of owners.
pub(super) fn first(number: u64) -> CaseV1 {
    let pick = |list: &[&str], salt: u64| {
        let index = (number.wrapping_mul(31).wrapping_add(salt)) % list.len() as u64;
        list[usize::try_from(index).unwrap_or(0)].to_owned()
    };
    CaseV1 {
        title: format!("{} #{number}", pick(&SUBJECTS, 3)),
        status: match number % 29 {
            0 => Status::Waiting,
            1..=9 => Status::Open,
            _ => Status::Closed,
        },
        assignee: (!number.is_multiple_of(11)).then(|| pick(&PEOPLE, 5)),
        opened_at: format!("2024-{:02}-{:02}T{:02}:00:00Z", number % 12 + 1, number % 28 + 1, number % 24),
        notes: number.is_multiple_of(97).then(|| "called again, still waiting; ".repeat(20)),
    }
}

/// What the new program makes of an old case.
pub(super) fn upgraded(case: CaseV1) -> Case {
    let CaseV1 { title, status, assignee, opened_at, notes } = case;
    Case { title, status, owner: assignee.unwrap_or_else(|| "nobody".into()), opened_at, notes }
}
