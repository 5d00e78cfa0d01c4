package data

import (
	"context"
	"fmt"
	"hash/fnv"
	"iter"

	"github.com/shoal-mp/shoal/tensor"
)

// A reader is a worker's position in a part of a Stream. It is made by readerAt. Only its worker
// may use it.
type reader struct {
	loop    context.Context // context of the loop that reads the part
	epoch   int
	at      int // number of samples read
	current sampleContext
	next    func() (any, error, bool)
	stop    func()
	end     bool
}

// readerAt returns the reader of a part at the requested position. If the open reader is
// elsewhere, it opens the part again and skips the samples before the position. A panic of the
// Stream is passed on.
func (w *worker) readerAt(o fetchRequest) *reader {
	r := w.readers[o.Part.Index]
	if r != nil && r.loop == w.parent && r.epoch == o.Epoch && r.at == o.From {
		return r
	}
	if r != nil {
		r.close()
	}
	r = &reader{loop: w.parent, epoch: o.Epoch, current: sampleContext{info: w.current.info}}
	r.next, r.stop = iter.Pull2(valuesOf(r.current.withContext(w.parent), w.stream, o.Part))
	w.readers[o.Part.Index] = r
	for r.at < o.From && !r.end && w.parent.Err() == nil {
		r.readSample(o.Part)
	}
	return r
}

// close ends the sequence of the part. It recovers panics of deferred calls in the user's Samples.
func (r *reader) close() error {
	return recoverPanic(func() error {
		r.stop()
		return nil
	})
}

// readSample reads the next sample: a [Sample] or a value. At the end of the part it sets r.end
// and returns nil, nil. For random numbers, its index is the one it would have if samples were
// assigned to the parts in turn.
func (r *reader) readSample(p Part) (any, error) {
	r.current.setSample(r.at*p.Count + p.Index)
	v, err, ok := r.next()
	if !ok {
		r.end = true
		return nil, nil
	}
	r.at++
	return v, err
}

// nextSample reads the next sample of a part and prepares it for a batch. At the end of the part
// it sets r.end and returns the zero sample.
func (w *worker) nextSample(r *reader, p Part) (sample, error) {
	begin := w.track.Now()
	v, err := r.readSample(p)
	if w.recordSpan("fetch", begin); err != nil || r.end {
		return sample{}, err
	}
	plain, _ := v.(Sample)
	return w.prepareSample(plain, v)
}

// read makes a batch of at most o.N samples of a part, after the first o.From. Samples that fail
// are listed in out.Bad; unless w.Skip is set, the first of them ends reading, and there is no
// batch.
func (w *worker) read(o fetchRequest) (out fetchResult) {
	var samples []sample
	var at []int
	var r *reader
	err := recoverPanic(func() error {
		r = w.readerAt(o)
		for out.Read < o.N {
			s, err := w.nextSample(r, o.Part)
			if r.end {
				break
			}
			if out.Read++; err != nil {
				out.Bad = append(out.Bad, failed{out.Read - 1, err})
				if !w.Skip {
					break
				}
				continue
			}
			samples, at = append(samples, s), append(at, out.Read-1)
		}
		return nil
	})
	if err != nil { // after a panic the sequence cannot continue
		out.Bad, out.Read, out.End = append(out.Bad, failed{out.Read, err}), out.Read+1, true
		delete(w.readers, o.Part.Index)
	} else {
		out.End = r.end
	}
	if w.Debug {
		out.Print = fingerprint(samples)
	}
	if len(out.Bad) == 0 || w.Skip {
		w.joinSamples(&out, samples, at)
	}
	return out
}

// printed is the maximum number of samples in a fingerprint.
const printed = 8

// fingerprint returns a hash of the first samples, at most 8, which is the same in all
// processes. It returns 0 if there are no samples.
func fingerprint(samples []sample) uint64 {
	if len(samples) == 0 {
		return 0
	}
	h := fnv.New64a()
	for _, s := range samples[:min(len(samples), printed)] {
		for _, t := range s.Sample {
			fmt.Fprint(h, t.DType(), t.Shape())
			h.Write(tensor.Bytes(contiguousTensor(t)))
		}
	}
	return h.Sum64()
}
