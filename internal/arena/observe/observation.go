package observe

import (
	"cmp"
	"slices"

	"github.com/shoal-mp/shoal/shm"
)

// An Observation is a [shm.Report] with everything that the processes of the domain share and wait
// for.
type Observation struct {
	shm.Report
	// Version is the protocol version of the answering program. It is 0 if that program is too old
	// to be observed; then only Report is set.
	Version int `json:"version"`

	Participants []Participant    `json:"participants"` // in the order of seats
	Summary      Summary          `json:"summary"`
	Queues       []QueueView      `json:"queues"`      // those with waiters first, then by depth
	QueuesLeft   int              `json:"queues_left"` // number of queues left out
	Locks        []LockView       `json:"locks"`       // those with waiters first, then those held
	LocksLeft    int              `json:"locks_left"`  // number of locks left out
	Timelines    []TimelineView   `json:"timelines"`   // of loaders
	Bound        map[string]Bound `json:"bound"`       // by name
}

// A Participant is a process in the domain.
type Participant struct {
	PID   int    `json:"pid"`
	Seat  int    `json:"seat"`
	State string `json:"state"` // live, joining, or dead: not reaped yet
}

// A Bound is the value bound to a name.
type Bound struct {
	Blocks []string `json:"blocks"` // in the order of the value
}

// Limits of an observation. They bound its size, however large the domain is.
const (
	maxListed    = 128 // queues, and likewise locks
	maxLargest   = 32  // blocks
	maxTimelines = 16  // loaders
)

// A QueueView describes a ring: a queue, one direction of a pipe, or a Latest.
type QueueView struct {
	Block    string   `json:"block"`
	Names    []string `json:"names,omitempty"`
	Label    string   `json:"label"` // name of the type of the messages
	Capacity int      `json:"capacity"`
	Depth    int      `json:"depth"`
	// Puts counts since the ring was made. It includes puts that were undone because their process
	// died.
	Puts  uint64 `json:"puts"`
	Gets  uint64 `json:"gets"`
	Bytes int64  `json:"bytes"` // committed bytes of its slots
	// Latest means that messages stay in the ring and every process reads the newest.
	Latest bool `json:"latest"`
	// News is the body of the newest message of a Latest, if it is short and has no blocks.
	News      []byte  `json:"news,omitempty"`
	Finished  bool    `json:"finished"` // no further puts
	Senders   EndView `json:"senders"`
	Receivers EndView `json:"receivers"`
}

// An EndView describes the sending or the receiving end of a queue.
type EndView struct {
	PIDs      []int `json:"pids"`       // processes that hold it
	InTransit int   `json:"in_transit"` // messages that hold it
	Gone      bool  `json:"gone"`       // no process and no message holds it, for ever
	Waiting   []int `json:"waiting"`    // processes that wait for a message, or for room
	DeadPID   int   `json:"dead_pid,omitempty"`
}

// A LockView describes a lock or another synchronisation object.
type LockView struct {
	Block string   `json:"block"`
	Names []string `json:"names,omitempty"`
	// Kind is mutex, recursive mutex, rwmutex, semaphore, cond, event or barrier.
	Kind  string `json:"kind"`
	Owner int    `json:"owner"`          // process that holds the lock, or 0
	Dead  bool   `json:"dead,omitempty"` // the owner has died
	Lost  bool   `json:"lost,omitempty"` // unusable for ever, after the death of an owner
	// Shares lists the readers, the permits taken, the waiters of a cond, or the members of a
	// barrier.
	Shares  []Share `json:"shares"`
	Limit   int     `json:"limit,omitempty"`   // initial permits, or parties
	Permits int     `json:"permits,omitempty"` // available permits
	Set     bool    `json:"set,omitempty"`     // flag of an event
	Broken  bool    `json:"broken,omitempty"`  // of a barrier
	Arrived int     `json:"arrived,omitempty"` // goroutines at a barrier, in this turn
	Turn    uint64  `json:"turn,omitempty"`    // changes when a barrier opens or an event is set
	Waiting []int   `json:"waiting"`           // processes that wait for it
	Drained []int   `json:"drained,omitempty"` // writers that wait until the readers are done
	PIDs    []int   `json:"pids"`              // processes that hold the block
}

// A Share is the count that one process has in a lock; see LockView.Shares.
type Share struct {
	PID   int  `json:"pid"`
	Count int  `json:"count"`
	Dead  bool `json:"dead,omitempty"`
}

// A TimelineView describes the recent activities of a loader's workers and of the consumer of its
// batches. Times are in microseconds.
type TimelineView struct {
	Block    string        `json:"block"`
	Workers  int           `json:"workers"` // 0: the consumer loads the batches itself
	Step     int64         `json:"step"`    // length of a step in a track
	Window   int64         `json:"window"`  // length of all steps together
	Consumer TrackView     `json:"consumer"`
	Tracks   []TrackView   `json:"tracks"`      // of workers
	Left     int           `json:"tracks_left"` // number of tracks left out
	Batches  []PassageView `json:"batches"`     // taken last, in order
	Taken    uint64        `json:"taken"`       // number of batches taken so far
}

// A TrackView describes the activities of one worker, or of the consumer. Its lists have one entry
// for each step, oldest first; the last step is still running.
type TrackView struct {
	PID     int     `json:"pid"`
	State   string  `json:"state"` // working, idle, blocked, ended, or dead
	Epoch   int     `json:"epoch"`
	Batch   int     `json:"batch"`  // current or last batch
	For     int64   `json:"for"`    // time spent in State so far
	Deaths  uint64  `json:"deaths"` // workers of this track that died
	Died    int64   `json:"died"`   // time since the last of them was replaced, or 0
	Working []int64 `json:"working"`
	Idle    []int64 `json:"idle"`
	Blocked []int64 `json:"blocked"`
}

// A PassageView describes one batch that was taken. Its times are ages: how long ago each event
// happened.
type PassageView struct {
	Epoch int   `json:"epoch"`
	Batch int   `json:"batch"`
	Asked int64 `json:"asked"`
	Began int64 `json:"began"`
	Ready int64 `json:"ready"`
	Want  int64 `json:"want"`
	Taken int64 `json:"taken"`
}

// sortQueues sorts the queues, those with waiters first and then by depth. It returns at most
// [maxListed] of them, and the number left out.
func sortQueues(all []QueueView) ([]QueueView, int) {
	waiting := func(q QueueView) int { return len(q.Senders.Waiting) + len(q.Receivers.Waiting) }
	slices.SortStableFunc(all, func(a, b QueueView) int {
		return cmp.Or(cmp.Compare(min(waiting(b), 1), min(waiting(a), 1)), cmp.Compare(b.Depth, a.Depth))
	})
	n := min(len(all), maxListed)
	return all[:n], len(all) - n
}

// sortLocks sorts the locks, those with waiters first and then those that are held. It returns at
// most [maxListed] of them, and the number left out.
func sortLocks(all []LockView) ([]LockView, int) {
	rank := func(l LockView) int {
		return 2*min(len(l.Waiting)+len(l.Drained), 1) + min(l.Owner+len(l.Shares), 1)
	}
	slices.SortStableFunc(all, func(a, b LockView) int { return cmp.Compare(rank(b), rank(a)) })
	n := min(len(all), maxListed)
	return all[:n], len(all) - n
}
