package diagnose

import (
	"errors"

	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/pystack"
)

// ErrProcess should be wrapped by errors about a process that cannot be examined.
var ErrProcess = errors.New("cannot examine the process")

// A Report is the result of an examination.
type Report struct {
	Verdict   string    `json:"verdict"`
	Findings  []Finding `json:"findings"` // the most important first
	Notes     []string  `json:"notes"`
	Processes []Process `json:"processes"` // in the order of the tree
	Stacks    string    `json:"stacks"`    // source of the Python stacks, or why there are none
	Seconds   float64   `json:"seconds"`   // duration of the observation
}

// A Finding is a fault with its culprit.
type Finding struct {
	Rule     string   `json:"rule"`
	PID      int      `json:"pid"` // the culprit
	Cause    string   `json:"cause"`
	Evidence []string `json:"evidence"`
	Cure     string   `json:"cure"`

	weight int
}

// A Process is a line of the process tree.
type Process struct {
	PID     int             `json:"pid"`
	Parent  int             `json:"parent"`
	Depth   int             `json:"depth"`
	Role    string          `json:"role"`
	Rank    string          `json:"rank,omitempty"`
	State   string          `json:"state"`
	CPU     float64         `json:"cpu"` // CPUs used
	Threads int             `json:"threads"`
	Memory  int64           `json:"memory"` // resident bytes
	Read    float64         `json:"read"`   // bytes read from devices per second
	Faults  float64         `json:"major_faults"`
	Files   int             `json:"files"`
	Wait    string          `json:"wait"` // object or event that the main thread waits for
	Stacks  []pystack.Stack `json:"stacks,omitempty"`
}

// Healthy reports whether there are no findings.
func (r *Report) Healthy() bool { return len(r.Findings) == 0 }

// pageSize converts resident pages to bytes; it is the size on the supported machines.
const pageSize = 4096
