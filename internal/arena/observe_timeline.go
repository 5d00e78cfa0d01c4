package arena

import (
	"cmp"
	"slices"

	"github.com/shoal-mp/shoal/internal/sys"
)

// A TimelineView is what the workers of a loader have done lately, and its consumer. Times are in
// microseconds.
type TimelineView struct {
	Block    string        `json:"block"`
	Workers  int           `json:"workers"` // 0: the consumer loads
	Step     int64         `json:"step"`    // of each time in a track
	Window   int64         `json:"window"`  // all of them
	Consumer TrackView     `json:"consumer"`
	Tracks   []TrackView   `json:"tracks"`      // of workers
	Left     int           `json:"tracks_left"` // that are not listed
	Batches  []PassageView `json:"batches"`     // that were taken last, in order
	Taken    uint64        `json:"taken"`       // of all
}

// A TrackView is what one worker has done, or the consumer. The lists have an entry for each step,
// the oldest first; the last one is under way.
type TrackView struct {
	PID     int     `json:"pid"`
	State   string  `json:"state"` // working, idle, blocked, ended, or dead
	Epoch   int     `json:"epoch"`
	Batch   int     `json:"batch"`  // with which it is or was last
	For     int64   `json:"for"`    // since when it is in this state
	Deaths  uint64  `json:"deaths"` // of workers that had this track
	Died    int64   `json:"died"`   // how long ago the last one was replaced; 0 where none was
	Working []int64 `json:"working"`
	Idle    []int64 `json:"idle"`
	Blocked []int64 `json:"blocked"`
}

// A PassageView is a batch that was taken. The times are ago.
type PassageView struct {
	Epoch int   `json:"epoch"`
	Batch int   `json:"batch"`
	Asked int64 `json:"asked"`
	Began int64 `json:"began"`
	Ready int64 `json:"ready"`
	Want  int64 `json:"want"`
	Taken int64 `json:"taken"`
}

// Limits of what is told of a timeline.
const (
	maxTimelines    = 16
	maxTracks       = 64
	observedSteps   = timelineSteps - 14 // the steps before may be overwritten meanwhile
	observedBatches = 32
)

var activityNames = [...]string{"", "working", "idle", "blocked", "ended"}

// timelineNow reads the timeline in a block whose word was w. It reports false if that is none, or
// not yet, or not any more. The words may be anything.
func (d *Domain) timelineNow(i uint32, b *block, w stateWord) (v TimelineView, ok bool) {
	p, ok := d.bytesNow(b)
	if !ok {
		return v, false
	}
	words := NumbersIn[uint64](p)
	if len(words) < tracksAt+trackWords || words.At(timelineMagic) != timelineForm {
		return v, false
	}
	r := timelineReader{d: d, words: words, now: int64(sys.Monotonic())}
	n := int(min(words.At(timelineTracks), uint64(len(words)-tracksAt)/trackWords, mostTrack))
	v = TimelineView{
		Block: makeHandle(i, w.generation()).String(), Step: timelineStep.Microseconds(),
		Workers: int(min(words.At(timelineWorkers), mostTrack)),
		Tracks:  []TrackView{}, Batches: r.batches(), Taken: words.At(timelineTaken),
	}
	v.Window = v.Step * observedSteps
	for k := range n {
		switch t, ok := r.track(k); {
		case !ok:
		case k == 0:
			v.Consumer = t
		case len(v.Tracks) == maxTracks:
			v.Left++
		default:
			v.Tracks = append(v.Tracks, t)
		}
	}
	return v, w.same(b.w.Load())
}

// A timelineReader reads one timeline at one time.
type timelineReader struct {
	d     *Domain
	words Numbers[uint64]
	now   int64
}

// ago returns how long ago a time was, in microseconds. A time that cannot be is now, or the
// longest ago that is told.
func (r *timelineReader) ago(at uint64) int64 {
	const longest = int64(1) << 50
	if at > uint64(r.now) {
		return 0
	}
	return min((r.now-int64(at))/1000, longest)
}

// epochOf splits the number of a batch.
func epochOf(batch uint64) (epoch, number int) {
	return int(batch >> 32 & 0xffffff), int(batch & 0xffffffff)
}

// track reads a track. It reports false for one that nobody has written.
func (r *timelineReader) track(k int) (v TrackView, ok bool) {
	w := r.words[tracksAt+k*trackWords:][:trackWords]
	now, since := w.At(trackNow), w.At(trackSince)
	what := Activity(now >> 56)
	if what == Away || what > Finished {
		return v, false
	}
	v = TrackView{PID: int(int32(w.At(trackPID))), State: activityNames[what], For: r.ago(since),
		Deaths: w.At(trackDeaths), Working: make([]int64, observedSteps), Idle: make([]int64, observedSteps),
		Blocked: make([]int64, observedSteps)}
	v.Epoch, v.Batch = epochOf(now & subject)
	if at := w.At(trackDied); at != 0 {
		v.Died = max(1, r.ago(at))
	}
	lists := [][]int64{v.Working, v.Idle, v.Blocked}
	last := r.now / int64(timelineStep)
	for i := range observedSteps {
		step := last - int64(observedSteps-1-i)
		at := trackHead + 2*int(max(step, 0)%timelineSteps)
		stamp, times := w.At(at), w.At(at+1)
		if step < 0 || stamp != uint64(step) || w.At(at) != stamp {
			continue
		}
		for a := range lists {
			lists[a][i] = min(int64(times>>(timeBits*a)&timeMask)*timeUnit, int64(timelineStep)) / 1000
		}
	}
	if what == Finished {
		return v, true
	}
	if !r.d.isParticipant(v.PID) {
		v.State = "dead"
		return v, true
	}
	// What is under way is added to the steps since it began.
	from := max(int64(min(since, uint64(r.now))), (last-observedSteps+1)*int64(timelineStep))
	for from < r.now {
		step := from / int64(timelineStep)
		end := min((step+1)*int64(timelineStep), r.now)
		cell := &lists[what-Working][step-(last-observedSteps+1)]
		*cell = min(*cell+(end-from)/1000, timelineStep.Microseconds())
		from = end
	}
	return v, true
}

// isParticipant reports whether a process takes part in the domain and is not known to be dead.
func (d *Domain) isParticipant(pid int) bool {
	for s := range d.parts {
		state := d.parts[s].state.Load()
		if !state.is(participantFree) && !state.is(participantDead) && d.pidOf(s) == pid {
			return true
		}
	}
	return false
}

// batches reads the batches that were taken last, the first of them first.
func (r *timelineReader) batches() []PassageView {
	all := []PassageView{}
	type numbered struct {
		n uint64
		PassageView
	}
	var found []numbered
	for i := range batchRecords {
		w := r.words[timelineHead+i*batchWords:][:batchWords]
		n := w.At(0)
		v := PassageView{Asked: r.ago(w.At(2)), Began: r.ago(w.At(3)), Ready: r.ago(w.At(4)), Want: r.ago(w.At(5)),
			Taken: r.ago(w.At(6))}
		v.Epoch, v.Batch = epochOf(w.At(1))
		if n == 0 || n%batchRecords != uint64(i) || w.At(0) != n {
			continue
		}
		found = append(found, numbered{n, v})
	}
	slices.SortFunc(found, func(a, b numbered) int { return cmp.Compare(a.n, b.n) })
	for _, f := range found[max(0, len(found)-observedBatches):] {
		all = append(all, f.PassageView)
	}
	return all
}
