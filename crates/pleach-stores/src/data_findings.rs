use pleach_contract::evolution::{Effect, Question, Subject, Verdict};

use crate::asked::Tally;
use crate::evidence::Answer;
use crate::plan::PlanFinding;

/// Records that the new contract refuses, for which no other finding takes the blame.
pub(crate) fn data_refused(subject: &Subject, path: &str, of: u64, tally: Tally) -> PlanFinding {
    let answer = Answer { of, ..tally.into_answer() };
    PlanFinding {
        code: "data.refused".to_owned(),
        message: "stored values could not be read any more".to_owned(),
        reason: format!(
            "every record was judged as a reader of the new contract would, and no other finding explains these; scanned: {answer}"
        ),
        fix: "correct these values first, or raise the version and accept the old one".to_owned(),
        question: Some(Question::Refused),
        answer: Some(answer),
        ..told(subject, path)
    }
}

/// Records that the contract in force refuses already: a note, since nothing is lost that could be read.
pub(crate) fn data_unreadable(subject: &Subject, path: &str, of: u64, tally: Tally) -> PlanFinding {
    let answer = Answer { of, ..tally.into_answer() };
    PlanFinding {
        code: "data.unreadable".to_owned(),
        backward: Effect::Ok,
        declared: Verdict::Safe,
        verdict: Verdict::Safe,
        message: "stored values break the contract in force, and stay unreadable".to_owned(),
        reason: format!("the change takes nothing from them that could be read; scanned: {answer}"),
        fix: "correct or delete them: they came past the guards, or were accepted as lost".to_owned(),
        answer: Some(answer),
        ..told(subject, path)
    }
}

/// Older records that the engine could not deliver: nobody can say whether they stay readable.
pub(crate) fn data_unread(subject: &Subject, path: &str) -> PlanFinding {
    PlanFinding {
        code: "data.unread".to_owned(),
        backward: Effect::Unknown,
        message: "the older records of keys could not be read".to_owned(),
        reason:
            "the engine has no room to deliver them all, so some may be unreadable under the new contract"
                .to_owned(),
        fix: "raise `cache_bytes_max` of the engine and plan again, or acknowledge it".to_owned(),
        ..told(subject, path)
    }
}

fn told(subject: &Subject, path: &str) -> PlanFinding {
    PlanFinding {
        code: String::new(),
        path: path.to_owned(),
        subject: subject.clone(),
        backward: Effect::Breaks,
        forward: Effect::Ok,
        declared: Verdict::Dangerous,
        verdict: Verdict::Dangerous,
        message: String::new(),
        reason: String::new(),
        fix: String::new(),
        question: None,
        answer: None,
        against: None,
    }
}
