package hogwild

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/cmd/internal/words"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/trace"
)

// Run trains, tests and saves the network and prints the result. It starts processes, so the
// program must have called [shoal.Main]. If a worker fails, ctx is done or the file cannot be
// written, the network as trained so far is still tested, saved and reported, and the error has
// the cause. If the reader of the output closes the pipe, training stops, the network is saved,
// and Run returns [ErrUnread]. Other errors may wrap [ErrOption], [ErrDownload] or [ErrSave].
func Run(ctx context.Context, o Options) error {
	ctx, release := o.contextWhileRead(ctx)
	defer release()
	if err := o.check(); err != nil {
		return err
	}
	dev, err := o.device()
	switch {
	case o.Device == "auto" && err != nil:
		fmt.Fprintf(o.log(), "device auto: the CPU, since no GPU can be used: %v\n", err)
	case o.Device == "auto":
		fmt.Fprintf(o.log(), "device auto: %v\n", dev)
	}
	r, err := newRun(ctx, o, dev)
	if err != nil {
		return err
	}
	failed := joinErrors(r.tracePhase("train", func() error { return r.runTraining(ctx) }),
		r.tracePhase("test", func() error { return r.testNetwork(ctx) }), r.tracePhase("save", r.save), r.close())
	if failed != nil {
		r.result.Failure = failed.Error()
	}
	r.result.storeStats(r.domain.Stats())
	err = joinErrors(failed, r.result.write(o.Stdout, o.JSON))
	if errors.Is(context.Cause(ctx), ErrUnread) {
		return r.reportUnread()
	}
	return err
}

// reportUnread prints on standard error where the network was saved after the reader of standard
// output has closed the pipe. It returns [ErrUnread].
func (r *run) reportUnread() error {
	switch {
	case r.unsaved != nil:
		fmt.Fprintf(r.Stderr, "%v; training stopped; %v\n", ErrUnread, words.CleanError(r.unsaved))
	case r.result.Model != "":
		fmt.Fprintf(r.Stderr, "%v; training stopped; its network was saved to %s\n", ErrUnread, r.result.Model)
	}
	return ErrUnread
}

// joinErrors is like [errors.Join], but returns a single error unchanged, so that %+v prints the
// stack of a worker. It returns nil if all errors are nil.
func joinErrors(errs ...error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// A run is the state of the root process.
type run struct {
	Options
	domain  *arena.Domain
	device  tensor.Device
	digits  *digits
	net     *Net
	result  *Result
	unsaved error // why the network is not in the requested file
	trace   *trace.Trace
	track   *trace.Track
}

// tracePhase runs a phase, records it as a span of the trace, and returns the error of do.
func (r *run) tracePhase(name string, do func() error) error {
	begin := r.track.Now()
	defer func() { r.track.Span(name, begin, r.track.Now()) }()
	return do()
}

// newRun loads the data set and creates the network, in shared memory or on a device. The caller
// must call close.
func newRun(ctx context.Context, o Options, dev tensor.Device) (r *run, err error) {
	r = &run{Options: o, device: dev, result: newResult(&o, dev)}
	if r.domain, err = open(); err != nil {
		return nil, err
	}
	if o.Trace != "" {
		if r.trace, err = trace.Create(o.Trace); err != nil {
			return nil, fmt.Errorf("--trace %s: %w", o.Trace, err)
		}
	}
	r.track = r.trace.Track("run")
	err = r.tracePhase("data set", func() error {
		r.digits, err = o.openDigits(ctx)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, r.trace.Close())
	}
	r.net = newNet(o.Seed)
	if err := errors.Join(nn.To(r.net, dev), r.digits.moveTo(dev), r.digits.train.Share(),
		nn.Share(r.net)); err != nil {
		r.close()
		return nil, fmt.Errorf("move the network and %s to shared memory: %w", r.digits.name, err)
	}
	s := r.domain.Stats()
	r.result.Dataset, r.result.TrainSize, r.result.TestSize = r.digits.name, r.digits.train.Len(), r.digits.test.Len()
	r.result.BytesShared, r.result.BytesMovedIn = s.Bytes+r.deviceBytes(), s.Copied+r.deviceBytes()
	o.printNote("%s: %d training images, %d test images; %s with %s; %s shared",
		r.digits.name, r.result.TrainSize, r.result.TestSize, words.Count(o.Workers, "worker"),
		words.Count(o.threadBudget(), "thread"), words.Bytes(r.result.BytesShared))
	return r, nil
}

// deviceBytes returns the bytes of the network and the training set on a device, which the
// domain does not count. It returns 0 if they are on the host.
func (r *run) deviceBytes() (n int64) {
	if r.device == nil {
		return 0
	}
	for _, t := range nn.State(r.net) {
		n += int64(t.Nbytes())
	}
	for _, t := range r.digits.train.Tensors {
		n += int64(t.Nbytes())
	}
	return n
}

// runTraining starts the workers and shows their reports until all of them have exited. It returns
// the first worker's error.
func (r *run) runTraining(ctx context.Context) (failed error) {
	reports, err := ipc.NewQueue[report](64 * r.Workers)
	if err != nil {
		return fmt.Errorf("create report queue: %w", err)
	}
	defer reports.Close()
	seen, err := openCurves(ctx)
	if err != nil {
		return fmt.Errorf("create curves: %w", err)
	}
	defer func() { failed = errors.Join(failed, seen.close()) }()
	start := time.Now()
	g := shoal.NewGroup(ctx, shoal.Options{Workers: r.Workers, Threads: r.Threads})
	defer g.Close()
	j := r.workerJob(reports.Sender())
	for range r.Workers {
		trainer.Go(g, j)
	}
	reports.Sender().Close() // the queue ends with the last worker
	heard := r.collectReports(reports.Receiver(), j.totalSamples(), seen)
	failed = g.Wait()
	r.result.storeReports(heard, time.Since(start))
	r.result.BytesCopied = r.domain.Stats().Copied + r.deviceBytes() - r.result.BytesMovedIn
	return failed
}

// collectReports shows the workers' reports and stores them in the returned journal, and their
// means in seen, until no sender is left. totals are the workers' numbers of samples, by rank. An
// interrupt does not end collectReports directly: it ends the workers, which closes their ends of
// the queue. Errors are shown, not returned.
func (r *run) collectReports(reports *ipc.Receiver[report], totals []int, seen *curves) *journal {
	b, heard := newBoard(&r.Options, totals), newJournal(r.Workers)
	defer b.close()
	for {
		one, err := reports.Get(context.Background())
		if errors.Is(err, ipc.ErrClosed) {
			return heard
		}
		if err != nil {
			r.printNote("report lost: %v", err)
			continue
		}
		heard.add(one)
		b.showReport(one)
		if err := seen.store(heard); err != nil {
			r.printNote("curve point lost: %v", err)
		}
	}
}

// workerJob returns the argument of every worker.
func (r *run) workerJob(reports *ipc.Sender[report]) job {
	return job{
		Net: r.net, Digits: r.digits.train, Reports: reports,
		Trace:   r.trace,
		Workers: r.Workers, Shard: r.Shard, Epochs: r.Epochs, BatchSize: r.BatchSize, LogInterval: r.LogInterval,
		LR: r.LR, Momentum: r.Momentum, Seed: r.Seed, DryRun: r.DryRun,
	}
}

// testNetwork evaluates the network on the test set and stores the figures in the result. It
// does nothing after an interrupt.
func (r *run) testNetwork(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	loss, correct, err := evaluate(ctx, r.net, r.digits.test, r.TestBatchSize)
	if err != nil {
		return fmt.Errorf("test the network: %w", err)
	}
	r.result.Tested, r.result.TestLoss, r.result.Correct = true, Number(loss), correct
	r.result.Accuracy = float64(correct) / float64(r.digits.test.Len())
	return nil
}

// save writes the network if Out is set. It stores the name of the file in the result, also if
// that is a temporary file because Out could not be written; the error then wraps [ErrSave].
func (r *run) save() (err error) {
	if r.Out == "" {
		return nil
	}
	r.result.Model, err = save(r.net, r.Out, map[string]string{
		"dataset": r.digits.name, "samples": fmt.Sprint(r.result.Samples), "accuracy": fmt.Sprint(r.result.Accuracy),
	})
	r.unsaved = err
	return err
}

// close releases the root process's shared memory and device memory, and closes the trace. The
// workers must have exited.
func (r *run) close() error {
	err := joinErrors(r.digits.train.Close(), r.digits.test.Close(), nn.Close(r.net), r.trace.Close())
	for try := 0; r.device != nil && try < 10 && r.domain.Stats().Blocks > 0; try++ {
		err = errors.Join(err, tensor.EmptyCache()) // memory allocated by the test
	}
	return err
}
