mod plans;
mod rig;
mod scenarios;
