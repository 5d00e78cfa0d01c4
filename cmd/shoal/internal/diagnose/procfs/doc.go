// Package procfs reads the state of processes from /proc: their threads, files, mappings, counters
// and control groups.
//
// It only reads files. It neither stops nor signals a process. A file that may not be read, for
// example of another user's process, leaves its field empty; [Process].Denied then names it. The
// directories are fields of [System], so that tests can use recorded trees.
package procfs
