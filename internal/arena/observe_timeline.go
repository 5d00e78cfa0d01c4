package arena

import (
	"cmp"
	"slices"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/observe"
	"github.com/shoal-mp/shoal/internal/arena/word"
	"github.com/shoal-mp/shoal/internal/sys"
)

// Limits of a TimelineView.
const (
	maxTimelines    = 16
	maxTracks       = 64
	observedSteps   = timelineSteps - 14 // earlier steps may be overwritten meanwhile
	observedBatches = 32
)

var activityNames = [...]string{"", "working", "idle", "blocked", "ended"}

// viewTimeline reads the timeline in block i. w is the state word that the caller has read.
// viewTimeline returns false if the block has no valid timeline, or if it changed meanwhile. It
// accepts arbitrary words.
func (d *Domain) viewTimeline(i uint32, b *layout.Block, w word.State) (v observe.TimelineView, ok bool) {
	p, ok := d.mem.BlockBytes(b)
	if !ok {
		return v, false
	}
	words := NumbersIn[uint64](p)
	if len(words) < tracksAt+trackWords || words.At(timelineMagic) != timelineForm {
		return v, false
	}
	r := timelineReader{d: d, words: words, now: int64(sys.Monotonic())}
	n := int(min(words.At(timelineTracks), uint64(len(words)-tracksAt)/trackWords, mostTrack))
	v = observe.TimelineView{
		Block: word.MakeHandle(i, w.Generation()).String(), Step: timelineStep.Microseconds(),
		Workers: int(min(words.At(timelineWorkers), mostTrack)),
		Tracks:  []observe.TrackView{}, Batches: r.readBatches(), Taken: words.At(timelineTaken),
	}
	v.Window = v.Step * observedSteps
	for k := range n {
		switch t, ok := r.readTrack(k); {
		case !ok:
		case k == 0:
			v.Consumer = t
		case len(v.Tracks) == maxTracks:
			v.Left++
		default:
			v.Tracks = append(v.Tracks, t)
		}
	}
	return v, w.IsSameUse(b.State.Load())
}

// A timelineReader reads one timeline as of one point in time.
type timelineReader struct {
	d     *Domain
	words Numbers[uint64]
	now   int64
}

// microsSince returns the age, in microseconds, of a time in nanoseconds of the monotonic clock.
// A time in the future has the age 0, and the greatest age is 2^50.
func (r *timelineReader) microsSince(at uint64) int64 {
	const longest = int64(1) << 50
	if at > uint64(r.now) {
		return 0
	}
	return min((r.now-int64(at))/1000, longest)
}

// splitBatch splits a batch word into the epoch and the number of the batch.
func splitBatch(batch uint64) (epoch, number int) {
	return int(batch >> 32 & 0xffffff), int(batch & 0xffffffff)
}

// readTrack reads track k. It returns false if the track has no writer yet, or is corrupt.
func (r *timelineReader) readTrack(k int) (v observe.TrackView, ok bool) {
	w := r.words[tracksAt+k*trackWords:][:trackWords]
	now, since := w.At(trackNow), w.At(trackSince)
	what := Activity(now >> 56)
	if what == Away || what > Finished {
		return v, false
	}
	v = observe.TrackView{PID: int(int32(w.At(trackPID))), State: activityNames[what], For: r.microsSince(since),
		Deaths: w.At(trackDeaths), Working: make([]int64, observedSteps), Idle: make([]int64, observedSteps),
		Blocked: make([]int64, observedSteps)}
	v.Epoch, v.Batch = splitBatch(now & subject)
	if at := w.At(trackDied); at != 0 {
		v.Died = max(1, r.microsSince(at))
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
	// The running activity is not in the track yet: add it to the steps since it began.
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

// isParticipant reports whether process pid is a participant that is not marked DEAD.
func (d *Domain) isParticipant(pid int) bool {
	for s := range d.mem.Participants {
		state := d.mem.Participants[s].State.Load()
		if !state.HasState(word.ParticipantFree) && !state.HasState(word.ParticipantDead) && d.mem.PIDOf(s) == pid {
			return true
		}
	}
	return false
}

// readBatches reads the last [observedBatches] batches that were taken, oldest first. It leaves
// out a record that is being written.
func (r *timelineReader) readBatches() []observe.PassageView {
	all := []observe.PassageView{}
	type numbered struct {
		n uint64
		observe.PassageView
	}
	var found []numbered
	for i := range batchRecords {
		w := r.words[timelineHead+i*batchWords:][:batchWords]
		n := w.At(0)
		v := observe.PassageView{Asked: r.microsSince(w.At(2)), Began: r.microsSince(w.At(3)),
			Ready: r.microsSince(w.At(4)), Want: r.microsSince(w.At(5)),
			Taken: r.microsSince(w.At(6))}
		v.Epoch, v.Batch = splitBatch(w.At(1))
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
