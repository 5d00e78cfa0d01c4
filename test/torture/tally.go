//go:build linux

package main

import "path/filepath"

// A tally counts events and violations. A process counts as killed or stopped if it had begun
// its work, and as early if it was killed before. The storms of test/crashtest and the garbage
// tests of internal/arena must print the same names.
type tally struct {
	Kills     int `json:"kills"`
	Stops     int `json:"stops"`
	Early     int `json:"births"`
	Scribbles int `json:"scribbles"`
	Hangs     int `json:"hangs"`
	Crashes   int `json:"crashes"`
	Lost      int `json:"lost_unexplained"`
	Twice     int `json:"duplicates"`
	Blocks    int `json:"leaked_blocks"`
	Bytes     int `json:"leaked_bytes"`
	FDs       int `json:"leaked_fds"`
	Files     int `json:"leaked_files"`
}

// add adds the counts of another tally.
func (t *tally) add(o tally) {
	t.Kills += o.Kills
	t.Stops += o.Stops
	t.Early += o.Early
	t.Scribbles += o.Scribbles
	t.Hangs += o.Hangs
	t.Crashes += o.Crashes
	t.Lost += o.Lost
	t.Twice += o.Twice
	t.Blocks += o.Blocks
	t.Bytes += o.Bytes
	t.FDs += o.FDs
	t.Files += o.Files
}

// wrong returns the number of violations.
func (t *tally) wrong() int {
	return t.Hangs + t.Crashes + t.Lost + t.Twice + t.Blocks + t.Bytes + t.FDs + t.Files
}

// filesLeft returns the names of the files of Shoal and PyTorch in /dev/shm, which outlive
// processes.
func filesLeft() (all []string) {
	for _, pattern := range []string{"/dev/shm/*shoal*", "/dev/shm/torch_*"} {
		names, _ := filepath.Glob(pattern)
		all = append(all, names...)
	}
	return all
}
