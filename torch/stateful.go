package torch

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
)

// Note [StatefulDataLoader] The StatefulDataLoader of torchdata has a worker loop of its own, whose
// last argument is the worker's state in a checkpoint, or None:
// https://github.com/pytorch/data/blob/v0.11.0/torchdata/stateful_dataloader/worker.py.
// The loop differs from PyTorch's in its messages. The first request is an _AckStartup; its answer
// carries the initial state of the worker, or the exception that prevented the start. The answer to
// _ResumeIteration carries the initial state too. A request for a batch also says whether the
// DataLoader wants a snapshot, and the answer is (batch, worker_id, delta). A delta contains the
// changed entries of a state, with tuples as their keys.
//
// The state of a Go worker is a dict of three numbers: the number of samples taken from the stream
// in this epoch (missing for a map-style data set, which needs no position), the epoch count of
// persistent workers, and the number of workers. It is the dataset_iter_state of a stream, and the
// dataset_state of a map-style data set. A restored stream is opened in that epoch and skips the
// samples, so it continues with exactly the samples that were left, if the data set, the seed and
// the number of workers are the same. torchdata restores the seed, and asserts the number of
// workers without a text. A Go worker therefore checks that number first.

// statefulWorkerLoop is the target of the worker processes of a StatefulDataLoader.
const statefulWorkerLoop = "torchdata.stateful_dataloader.worker._worker_loop"

var (
	ackStartup = named("torchdata.stateful_dataloader.worker._AckStartup")
	tombstone  = named("torchdata.stateful_dataloader.incremental_state._Tombstone")
)

// These are the keys of a worker's state in a checkpoint, and the keys of its own part.
const (
	stateWorker  = "worker_id"
	stateFetcher = "fetcher_state"
	stateEnded   = "fetcher_ended"
	stateDataset = "dataset_state"
	stateIter    = "dataset_iter_state"

	ownSamples = "samples"
	ownEpoch   = "epoch"
	ownWorkers = "workers"
)

// A position is the state of a worker of a StatefulDataLoader. [loaderWorker.restorePosition]
// makes it. One goroutine may use it.
type position struct {
	stream   bool
	restored bool         // the worker was started with a state
	sent     *python.Dict // the state that the DataLoader has, or nil for None
	samples  int64        // taken from the stream in this epoch
	skip     int64        // samples to skip before the first batch
	ended    bool         // the stream has no more samples
}

// restorePosition makes w a worker of a StatefulDataLoader, at the position that the arguments
// of its loop contain. The error wraps [ErrUnsupported] for a state that a Go worker cannot
// load, and is for the script.
func (w *loaderWorker) restorePosition(args python.Tuple) error {
	if len(args) <= argState {
		return protocolError("worker of a StatefulDataLoader has %d arguments, want %d", len(args), argState+1)
	}
	w.position = &position{stream: args[argKind] == int64(kindStream)}
	if args[argState] == nil {
		return nil
	}
	w.position.restored = true
	own, err := w.position.ownState(args[argState])
	if err != nil || own == nil {
		return err
	}
	var epoch, workers int64
	for _, part := range []struct {
		name string
		dst  *int64
	}{{ownEpoch, &epoch}, {ownWorkers, &workers}, {ownSamples, &w.position.skip}} {
		v, _ := own.Get(part.name)
		n, ok := v.(int64)
		if part.name == ownSamples && !w.position.stream {
			continue
		}
		if !ok || n < 0 || n > mostSkipped {
			return unsupported("%s in the state of the DataLoader worker is %v, want a number of at least 0: "+
				"load a state that was saved with Go workers", part.name, v)
		}
		*part.dst = n
	}
	if workers != int64(w.Workers) {
		return unsupported("the state was saved with num_workers=%d, and this StatefulDataLoader has %d: use the "+
			"same number, "+
			"or shoal.DataLoader, which resumes with any number of workers", workers, w.Workers)
	}
	w.info.Epoch = int(epoch)
	w.position.sent = own
	return nil
}

// mostSkipped is the largest number of samples in a state.
const mostSkipped = 1 << 52

// ownState returns the part of a worker's state that a Go worker has written. It returns nil if
// there is none: a state of Python workers without a state of the data set fits as it is,
// because the DataLoader then repeats the batches of a stream itself. The error wraps
// [ErrUnsupported] for a state of the data set's own Python code.
func (p *position) ownState(v any) (*python.Dict, error) {
	state, ok := v.(*python.Dict)
	if !ok {
		return nil, unsupported("state of the DataLoader worker is %T, want a dict", v)
	}
	own, _ := state.Get(stateDataset)
	if p.stream {
		if own != nil {
			return nil, errForeignState
		}
		fetcher, _ := state.Get(stateFetcher)
		d, ok := fetcher.(*python.Dict)
		if !ok && fetcher != nil {
			return nil, unsupported("%s of the DataLoader worker is %T, want a dict", stateFetcher, fetcher)
		}
		own, _ = d.Get(stateIter)
	}
	d, ok := own.(*python.Dict)
	if _, ours := d.Get(ownWorkers); own != nil && (!ok || !ours) {
		return nil, errForeignState
	}
	return d, nil
}

// errForeignState is returned for a state that the Python code of a data set has saved.
var errForeignState = unsupported("the state of the DataLoader worker was saved by the data set's own state_dict in " +
	"Python, which Go cannot load: save it with Go workers, or load it with Python workers")

// ownPart returns the part of the worker's state that Go defines: the epoch, the number of
// workers and, for a stream, the number of samples taken.
func (w *loaderWorker) ownPart() *python.Dict {
	own := python.NewDict(ownEpoch, int64(w.info.Epoch), ownWorkers, int64(w.Workers))
	if w.position.stream {
		own.Set(ownSamples, w.position.samples)
	}
	return own
}

// fullState returns the whole state of the worker, as _make_state_dict does, and records it as
// sent.
func (w *loaderWorker) fullState() *python.Dict {
	w.position.sent = w.ownPart()
	state := w.stateAround(w.position.sent)
	if w.position.stream {
		state.Set(stateDataset, nil)
	}
	return state
}

// deltaState returns the changes of the state since the last one that was sent, and records the
// state as sent.
func (w *loaderWorker) deltaState() *python.Dict {
	own, delta := w.ownPart(), new(python.Dict)
	if w.position.sent == nil { // the DataLoader has a single value, None, with the empty key
		delta.Set(python.Tuple{}, newInstance(tombstone, python.NewDict()))
	}
	for k, v := range own.All() {
		if old, ok := w.position.sent.Get(k); !ok || old != v {
			delta.Set(python.Tuple{k}, v)
		}
	}
	w.position.sent = own
	return w.stateAround(delta)
}

// stateAround returns the dict that torchdata expects as the state of the worker, with own, a
// result of ownPart or its changes, in its place.
func (w *loaderWorker) stateAround(own *python.Dict) *python.Dict {
	if !w.position.stream {
		return python.NewDict(stateWorker, w.ID, stateFetcher, nil, stateDataset, own)
	}
	// With batch_size=None, the DataLoader's fetcher never notes the end.
	ended := w.position.ended && w.collate
	return python.NewDict(stateWorker, w.ID, stateFetcher, python.NewDict(stateIter, own, stateEnded, ended))
}

// sendAck answers a request for the initial state. If failed is not nil, the answer is that
// exception. It returns failed, joined with an error of the connection.
func (w *loaderWorker) sendAck(ctx context.Context, request *python.Record, failed error) error {
	var initial any
	delta := w.position.restored && request.Class == ackStartup
	switch {
	case failed != nil:
		initial = w.wrapException(failed)
	case delta:
		initial = w.deltaState()
	default:
		initial = w.fullState()
	}
	ack := newInstance(ackStartup, python.NewDict(stateWorker, w.ID, "initial_state", initial, "is_delta", delta))
	if err := w.results.Put(ctx, python.Tuple{newInstance(request.Class, request.State), ack}); err != nil {
		return errors.Join(failed, err)
	}
	return failed
}

// trackSamples returns next with a count of the samples that it returns. It first skips the
// samples before a restored position, and returns an error if the stream ends there. next must
// return false at the end of the stream.
func (p *position) trackSamples(next func() (any, error, bool)) (func() (any, error, bool), error) {
	skip := p.skip
	p.samples, p.skip, p.ended = 0, 0, false
	counted := func() (any, error, bool) {
		v, err, ok := next()
		if ok {
			p.samples++
		} else {
			p.ended = true
		}
		return v, err, ok
	}
	var last error // an error among the skipped samples was reported before the state was saved
	for p.samples < skip {
		_, err, ok := counted()
		if !ok {
			return nil, errors.Join(fmt.Errorf("stream has %d samples, want at least %d as when the state was saved",
				p.samples, skip), last)
		}
		if err != nil {
			last = err
		}
	}
	return counted, nil
}

// splitRequest splits the index of a request of a StatefulDataLoader into PyTorch's index and
// whether the DataLoader wants a snapshot. The error wraps [ErrProtocol].
func splitRequest(v any) (index any, snapshot bool, err error) {
	pair, ok := v.(python.Tuple)
	if ok && len(pair) == 2 {
		snapshot, ok = pair[1].(bool)
		if ok {
			return pair[0], snapshot, nil
		}
	}
	return nil, false, protocolError("request of a StatefulDataLoader is %T, want an index and a bool", v)
}

// workerLoop returns the name of the worker loop that a process object runs, or "" if it runs
// another function.
func workerLoop(process any) string {
	o, _ := process.(*pickle.Object)
	if o == nil {
		return ""
	}
	state, _ := o.State.(*python.Dict)
	target, _ := state.Get("_target")
	switch name := functionName(target); name {
	case dataLoaderWorker, statefulWorkerLoop:
		return name
	}
	return ""
}
