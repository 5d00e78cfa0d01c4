package arena

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [Timelines] A timeline is a block in which the workers of a loader, and the goroutine that
// takes their batches, write what they do and since when. Only observers read it, and nobody relies
// on it. So it has no step in the reaper and no crash points: a process that is killed leaves what
// it did last, and an observer sees that the process is dead.
//
// Each track has one writer. Time goes by steps, and each step has the time that was spent in it by
// activity, in one word: so a track costs the same however often its writer turns to something
// else. A writer adds up an activity when it ends. What has begun since is added by the reader.

// An Activity is what the writer of a track does.
type Activity uint8

// The activities. A track whose word is zero has no writer yet.
const (
	Away     Activity = iota
	Working           // a worker loads, the consumer uses a batch
	Idle              // a worker waits for a task, the consumer for a batch
	Blocked           // a worker waits until its result is taken
	Finished          // the writer has ended
)

// timelineForm is in the first word of a timeline.
const timelineForm = 0x53484c544d4c0001

// The words of a timeline: a head, the batches that were taken last, and the tracks, of which the
// first is the consumer's.
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
	trackWords    = trackHead + 2*timelineSteps // of each step its number and the times
)

const (
	timeUnit  = 128 // nanoseconds; a step of one activity fits its bits
	timeBits  = 21
	timeMask  = 1<<timeBits - 1
	subject   = 1<<56 - 1
	mostTrack = 1 << 10
)

// A Timeline is this process's view of a timeline. It holds the block until Close, or until neither
// it nor one of its tracks is in use any more.
type Timeline struct {
	held  *timelineHold
	words Numbers[uint64]
	zero  time.Time // of this process
	at    int64     // zero on the clock of the machine, in nanoseconds
}

type timelineHold struct {
	d    *Domain
	h    Handle
	once atomic.Bool
}

func (t *timelineHold) release() error {
	if t.once.Swap(true) {
		return nil
	}
	return t.d.Release(t.h)
}

// NewTimeline makes a timeline of a loader with so many workers, which have as many tracks as
// given.
func (d *Domain) NewTimeline(workers, tracks int) (*Timeline, error) {
	if workers < 0 || tracks < 0 || tracks >= mostTrack {
		return nil, fmt.Errorf("shm: a timeline of %d tracks: want less than %d", tracks, mostTrack)
	}
	size := uint64(8 * (tracksAt + (tracks+1)*trackWords))
	h, err := d.allocObject(briefly, size, size, objectTimeline)
	if err != nil {
		return nil, err
	}
	t, err := d.timeline(h)
	if err != nil {
		return nil, errors.Join(err, d.Release(h))
	}
	t.words.Set(timelineTracks, uint64(tracks+1))
	t.words.Set(timelineWorkers, uint64(workers))
	t.words.Set(timelineMagic, timelineForm) // now an observer reads the rest
	return t, nil
}

// OpenTimeline returns a view of the timeline in the block h, and takes over a reference of h.
func (d *Domain) OpenTimeline(h Handle) (*Timeline, error) {
	t, err := d.timeline(h)
	if err == nil && t.words.At(timelineMagic) != timelineForm {
		err = fmt.Errorf("%w: %v is no timeline", ErrCorrupt, h)
	}
	return t, err
}

func (d *Domain) timeline(h Handle) (*Timeline, error) {
	b, err := d.check(h)
	if err != nil {
		return nil, err
	}
	p, err := d.bytesOf(b)
	if err != nil {
		return nil, err
	}
	words := NumbersIn[uint64](p)
	if extKind(b.ext.Load()) != objectTimeline || len(words) < tracksAt+trackWords {
		return nil, fmt.Errorf("%w: %v is no timeline", ErrCorrupt, h)
	}
	t := &Timeline{held: &timelineHold{d: d, h: h}, words: words, zero: time.Now(), at: int64(sys.Monotonic())}
	runtime.AddCleanup(t, func(held *timelineHold) { held.release() }, t.held)
	return t, nil
}

// Handle returns the handle of the block.
func (t *Timeline) Handle() Handle { return t.held.h }

// Retain takes a reference of the block more, for a message.
func (t *Timeline) Retain() error { return t.held.d.Retain(t.held.h) }

// Close lets go of the block. Nobody in this process writes to a track any more.
func (t *Timeline) Close() error {
	if t == nil {
		return nil
	}
	return t.held.release()
}

// Clock returns a time of this process on the clock of the machine.
func (t *Timeline) Clock(at time.Time) int64 { return t.at + int64(at.Sub(t.zero)) }

// Track begins to write a track: 0 is the consumer's, and the workers' follow. It returns nil for
// no timeline, and for a track that there is not. A track that the writer before has not ended is
// that of a dead process.
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
	w.Set(trackPID, uint64(t.held.d.parts[t.held.d.seat].pid.Load()))
	w.Set(trackNow, uint64(Idle)<<56)
	return k
}

// track returns the words of a track, nil where there is none.
func (t *Timeline) track(i int) Numbers[uint64] {
	if t == nil || i < 0 || uint64(i) >= min(t.words.At(timelineTracks), uint64(len(t.words)-tracksAt)/trackWords) {
		return nil
	}
	return t.words[tracksAt+i*trackWords:][:trackWords]
}

// A Track is a track that this process writes, by one goroutine at a time. Its methods do nothing
// for nil.
type Track struct {
	t     *Timeline
	w     Numbers[uint64]
	since int64
	what  Activity
}

// Turn notes what the writer does from now on, and with which batch.
func (k *Track) Turn(to Activity, batch uint64, at time.Time) {
	if k == nil {
		return
	}
	now := k.t.Clock(at)
	k.spend(now)
	k.what, k.since = to, now
	k.w.Set(trackSince, uint64(now))
	k.w.Set(trackNow, uint64(to)<<56|batch&subject)
}

// spend adds up the activity that ends.
func (k *Track) spend(now int64) {
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

// A Passage is the way of a batch, by the clock of the machine.
type Passage struct {
	Batch uint64
	Asked int64 // a worker was asked for it
	Began int64 // a worker has begun with it
	Ready int64
	Want  int64 // the consumer began to wait for it
	Taken int64
}

// Passed notes the way of a batch that the consumer has taken. One goroutine calls it at a time.
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

// End notes that the writer of a track has ended, for a process that did not say so. It is not
// there any more.
func (t *Timeline) End(i int, at time.Time) {
	w := t.track(i)
	if w == nil || Activity(w.At(trackNow)>>56) == Away {
		return
	}
	w.Set(trackSince, uint64(t.Clock(at)))
	w.Set(trackNow, uint64(Finished)<<56|w.At(trackNow)&subject)
}
