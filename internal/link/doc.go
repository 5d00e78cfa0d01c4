// Package link is what two processes that were not started by each other need of a stream before
// they trust it: both prove that they know a key, and then they exchange frames.
package link
