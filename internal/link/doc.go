// Package link connects two unrelated processes. Over a stream, both prove that they know a key,
// and then exchange frames.
package link
