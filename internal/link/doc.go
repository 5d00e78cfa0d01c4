// Package link connects two processes neither of which started the other. Over a stream both prove
// that they know a key, and then they exchange frames.
package link
