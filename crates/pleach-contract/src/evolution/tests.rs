mod contracts;
mod cost;
mod documentation;
mod given;
mod history;
mod keys;
mod schemas;
mod soundness;
