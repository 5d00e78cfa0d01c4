package arena

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [Timelines] A timeline is a block in which the workers of a loader, and the consumer of
// their batches, record what they do and since when. Only observers read it, and no operation
// depends on it. So it has no step in the reaper and no crash points. A process that is killed
// leaves its last record, and an observer sees that the process is dead.
//
// Each track has one writer at a time. Time is divided into steps, and one word of each step has
// the time spent in each activity. So a track has a fixed size, however often its writer changes
// its activity. A writer adds an activity to the steps when the activity ends; the reader adds the
// one that is still running.

// An Activity is what the writer of a track does.
type Activity uint8

// The activities. The zero Activity means that a track has had no writer yet.
const (
	Away     Activity = iota
	Working           // a worker loads a batch, or the consumer uses one
	Idle              // a worker waits for a task, or the consumer for a batch
	Blocked           // a worker waits until its result is taken
	Finished          // the writer has ended
)

// timelineForm is the magic number in the first word of a timeline.
const timelineForm = 0x53484c544d4c0001

// The words of a timeline: a head, the batches taken last, and the tracks. The first track is the
// consumer's.
const (
	timelineMagic = iota
	timelineTracks
	timelineWorkers
	timelineTaken
	timelineHead = 8

	batchRecords = 64
	batchWords   = 8
	tracksAt     = timelineHead + batchRecords*batchWords
)

// The words of a track.
const (
	trackPID = iota
	trackNow // activity 8 | subject 56
	trackSince
	trackDeaths
	trackDied
	trackHead = 8

	timelineSteps = 64
	timelineStep  = 200 * time.Millisecond
	trackWords    = trackHead + 2*timelineSteps // each step: its number, and the times
)

const (
	timeUnit  = 128 // nanoseconds; a full step of one activity fits timeBits
	timeBits  = 21
	timeMask  = 1<<timeBits - 1
	subject   = 1<<56 - 1
	mostTrack = 1 << 10
)

// A Timeline is this process's view of a timeline. It holds one reference of the block until Close,
// or until neither the Timeline nor one of its tracks is reachable. All methods may be called on
// nil, except Handle, Retain and Clock.
type Timeline struct {
	held  *timelineHold
	words Numbers[uint64]
	zero  time.Time // reference time of this process
	at    int64     // zero on the machine's monotonic clock, in nanoseconds
}

// A timelineHold is the reference of the block. It is shared by the Timeline and its cleanup.
type timelineHold struct {
	d    *Domain
	h    Handle
	once atomic.Bool
}

// releaseRef drops the reference. Further calls do nothing.
func (t *timelineHold) releaseRef() error {
	if t.once.Swap(true) {
		return nil
	}
	return t.d.Release(t.h)
}

// NewTimeline makes the timeline of a loader. workers is shown to observers; tracks is the
// number of tracks for workers, beside the consumer's. It returns an error if a number is
// negative or tracks is more than 1023. The caller must close the timeline.
func (d *Domain) NewTimeline(workers, tracks int) (*Timeline, error) {
	if workers < 0 || tracks < 0 || tracks >= mostTrack {
		return nil, fmt.Errorf("shm: timeline has %d tracks, want less than %d", tracks, mostTrack)
	}
	size := uint64(8 * (tracksAt + (tracks+1)*trackWords))
	h, err := d.allocObject(briefly, size, size, layout.ObjectTimeline)
	if err != nil {
		return nil, err
	}
	words, err := d.timelineWords(h)
	if err != nil {
		return nil, errors.Join(err, d.Release(h))
	}
	t := d.newTimelineView(h, words)
	t.words.Set(timelineTracks, uint64(tracks+1))
	t.words.Set(timelineWorkers, uint64(workers))
	t.words.Set(timelineMagic, timelineForm) // last: an observer reads the rest once it is set
	return t, nil
}

// OpenTimeline returns a view of the timeline in block h, which the caller must close. If it
// succeeds, the view takes over one of the caller's references of h. The error wraps
// [ErrCorrupt] if the block is not a timeline.
func (d *Domain) OpenTimeline(h Handle) (*Timeline, error) {
	words, err := d.timelineWords(h)
	if err != nil {
		return nil, err
	}
	if words.At(timelineMagic) != timelineForm {
		return nil, fmt.Errorf("%w: %v is not a timeline", ErrCorrupt, h)
	}
	return d.newTimelineView(h, words), nil
}

// timelineWords returns the words of the timeline in block h. It does not check the magic number,
// which is not set yet in a new timeline. The error wraps [ErrCorrupt] if h is another kind of
// block.
func (d *Domain) timelineWords(h Handle) (Numbers[uint64], error) {
	b, err := d.checkHandle(h)
	if err != nil {
		return nil, err
	}
	p, err := d.bytesOf(b)
	if err != nil {
		return nil, err
	}
	words := NumbersIn[uint64](p)
	if layout.ExtentKind(b.Extent.Load()) != layout.ObjectTimeline || len(words) < tracksAt+trackWords {
		return nil, fmt.Errorf("%w: %v is not a timeline", ErrCorrupt, h)
	}
	return words, nil
}

// newTimelineView returns a view of the timeline in block h, which takes over one of the caller's
// references of h.
func (d *Domain) newTimelineView(h Handle, words Numbers[uint64]) *Timeline {
	t := &Timeline{held: &timelineHold{d: d, h: h}, words: words, zero: time.Now(), at: int64(sys.Monotonic())}
	runtime.AddCleanup(t, func(held *timelineHold) { held.releaseRef() }, t.held)
	return t
}

// Handle returns the handle of the block.
func (t *Timeline) Handle() Handle { return t.held.h }

// Retain takes a further reference of the block, for a message.
func (t *Timeline) Retain() error { return t.held.d.Retain(t.held.h) }

// Close drops the reference of the block. This process must not write to a track of the timeline
// any more.
func (t *Timeline) Close() error {
	if t == nil {
		return nil
	}
	return t.held.releaseRef()
}

// Clock converts a time of this process to the machine's monotonic clock, in nanoseconds.
func (t *Timeline) Clock(at time.Time) int64 { return t.at + int64(at.Sub(t.zero)) }

// Track begins to write track i, at a time, with the activity [Idle]. Track 0 is the consumer's,
// and the workers' tracks follow. A track must not have two writers at the same time. If the
// last writer has not ended the track, Track counts it as dead. Track returns nil if t is nil or
// has no such track.
func (t *Timeline) Track(i int, at time.Time) *Track {
	w := t.track(i)
	if w == nil {
		return nil
	}
	k := &Track{t: t, w: w, since: t.Clock(at), what: Idle}
	if last := Activity(w.At(trackNow) >> 56); last != Away && last != Finished {
		w.Add(trackDeaths, 1)
		w.Set(trackDied, uint64(k.since))
	}
	w.Set(trackSince, uint64(k.since))
	w.Set(trackPID, uint64(t.held.d.mem.Participants[t.held.d.seat].PID.Load()))
	w.Set(trackNow, uint64(Idle)<<56)
	return k
}

// track returns the words of track i, or nil if there is none.
func (t *Timeline) track(i int) Numbers[uint64] {
	if t == nil || i < 0 || uint64(i) >= min(t.words.At(timelineTracks), uint64(len(t.words)-tracksAt)/trackWords) {
		return nil
	}
	return t.words[tracksAt+i*trackWords:][:trackWords]
}

// A Track is a track that this process writes. Its methods must not be called at the same time.
// They do nothing on nil.
type Track struct {
	t     *Timeline
	w     Numbers[uint64]
	since int64
	what  Activity
}

// Turn records that the writer does activity to from the time at on, with the given batch. batch
// has the number of the batch in its lower 32 bits and the epoch in the next 24.
func (k *Track) Turn(to Activity, batch uint64, at time.Time) {
	if k == nil {
		return
	}
	now := k.t.Clock(at)
	k.recordActivity(now)
	k.what, k.since = to, now
	k.w.Set(trackSince, uint64(now))
	k.w.Set(trackNow, uint64(to)<<56|batch&subject)
}

// recordActivity adds the activity that ends now to the steps.
func (k *Track) recordActivity(now int64) {
	if k.what < Working || k.what > Blocked {
		return
	}
	shift := timeBits * (k.what - Working)
	for from := max(k.since, now-int64(timelineSteps*timelineStep)); from < now; {
		step := from / int64(timelineStep)
		end := min((step+1)*int64(timelineStep), now)
		i := trackHead + 2*int(step%timelineSteps)
		if k.w.At(i) != uint64(step) {
			k.w.Set(i+1, 0)
			k.w.Set(i, uint64(step))
		}
		k.w.Set(i+1, k.w.At(i+1)+uint64(end/timeUnit-from/timeUnit)<<shift)
		from = end
	}
}

// A Passage has the times of a batch, by the machine's monotonic clock in nanoseconds.
type Passage struct {
	Batch uint64
	Asked int64 // a worker was asked for it
	Began int64 // a worker began to load it
	Ready int64
	Want  int64 // the consumer began to wait for it
	Taken int64
}

// Passed records a batch that the consumer has taken. It must not be called by two goroutines at
// the same time.
func (t *Timeline) Passed(p Passage) {
	if t == nil {
		return
	}
	n := t.words.At(timelineTaken) + 1
	at := timelineHead + int(n%batchRecords)*batchWords
	r := t.words[at:][:batchWords]
	r.Set(0, 0)
	r.Set(1, p.Batch)
	for i, v := range [...]int64{p.Asked, p.Began, p.Ready, p.Want, p.Taken} {
		r.Set(2+i, uint64(v))
	}
	r.Set(0, n)
	t.words.Set(timelineTaken, n)
}

// End records that the writer of track i has ended, for a process that did not do so itself. That
// process must not write the track any more.
func (t *Timeline) End(i int, at time.Time) {
	w := t.track(i)
	if w == nil || Activity(w.At(trackNow)>>56) == Away {
		return
	}
	w.Set(trackSince, uint64(t.Clock(at)))
	w.Set(trackNow, uint64(Finished)<<56|w.At(trackNow)&subject)
}
