mod access;
mod documentation;
mod given;
mod keys;
mod notation;
mod overlap;
