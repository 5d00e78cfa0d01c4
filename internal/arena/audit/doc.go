// Package audit compares the shared memory of a domain with the invariants of docs/memory.md. It
// changes no word, and takes no lane and no lock.
package audit
