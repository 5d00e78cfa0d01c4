package hogwild

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/trace"
)

// A job is passed to every worker. The network and the digits are in shared memory or on a device,
// so all workers use the same ones.
type job struct {
	Net     *Net
	Digits  *data.TensorDataset
	Reports *ipc.Sender[report]
	Trace   *trace.Trace

	Workers     int
	Shard       bool
	Epochs      int
	BatchSize   int
	LogInterval int
	LR          float64
	Momentum    float64
	Seed        uint64
	DryRun      bool
}

var trainer = shoal.Register("hogwild", func(ctx context.Context, rank int, j job) error {
	w := newWorker(rank, j)
	defer w.close()
	for epoch := range j.Epochs {
		if err := w.trainEpoch(ctx, epoch); err != nil {
			return err
		}
	}
	return nil
})

// sampleCount returns the number of samples of a worker in an epoch.
func (j *job) sampleCount(rank int) int { return j.sampler(rank, 0).Len() }

// totalSamples returns each worker's number of samples in the whole run, by rank.
func (j *job) totalSamples() []int {
	all := make([]int, j.Workers)
	for rank := range all {
		n := j.sampleCount(rank)
		if j.DryRun {
			n = min(n, j.BatchSize)
		}
		all[rank] = n * j.Epochs
	}
	return all
}

// A worker is the state of one training process. Its sample order, gradients and momentum are
// private. newWorker creates it, and the process must call close.
type worker struct {
	job
	loader *data.Loader
	scope  *autograd.Scope
	sgd    *optim.SGD
	said   report
	track  *trace.Track
}

func newWorker(rank int, j job) *worker {
	seed := j.Seed + uint64(rank)
	tensor.ManualSeed(seed) // for dropout
	return &worker{
		job: j, track: j.Trace.Track("train"),
		loader: data.NewLoader(j.Digits, data.Options{BatchSize: j.BatchSize, Sampler: j.sampler(rank, seed),
			Transform: pixels, Trace: j.Trace}),
		scope: autograd.NewScope(),
		sgd:   optim.NewSGD(nn.Params(j.Net), optim.SGDOptions{LR: j.LR, Momentum: j.Momentum}),
		said:  report{Rank: rank, PID: os.Getpid()},
	}
}

func (w *worker) close() {
	w.loader.Close()
	w.Trace.Close()
}

// sampler returns a worker's sample order: all samples in an order of seed, or with Shard a part
// of an order that all workers share, which ignores seed.
func (j *job) sampler(rank int, seed uint64) data.Sampler {
	if j.Shard {
		return data.Shard(data.Random(j.Digits.Len(), j.Seed), rank, j.Workers)
	}
	return data.Random(j.Digits.Len(), seed)
}

// trainEpoch trains for one epoch and sends reports. epoch counts from 0.
func (w *worker) trainEpoch(ctx context.Context, epoch int) error {
	w.said.Epoch, w.said.Done, w.said.Of = epoch+1, 0, w.sampleCount(w.said.Rank)
	steps, begin := 0, w.track.Now()
	defer func() { w.track.Span(fmt.Sprint("epoch ", epoch+1), begin, w.track.Now()) }()
	at := begin
	for batch, err := range w.loader.Epoch(ctx, epoch) {
		at = w.recordSpan("batch wait", at)
		if err != nil {
			return err
		}
		steps++
		last := w.said.Done+batch[1].Numel() == w.said.Of || w.DryRun
		told := last || steps%w.LogInterval == 0
		at = w.trainBatch(batch, at, told)
		batch.Close()
		if told {
			w.said.Peak, w.said.Alone = memoryUsage()
			if err := w.Reports.Put(ctx, w.said); err != nil {
				return err
			}
			at = w.recordSpan("report", at)
		}
		if last {
			break
		}
	}
	return nil
}

// trainBatch trains on one batch, which the caller must close. Other workers modify the parameters
// concurrently; see Note [Hogwild] in package optim. at is the start time of the step for the
// trace, and the result its end time. The accuracy is computed only if told is set, because it will
// be reported then.
func (w *worker) trainBatch(batch data.Batch, at time.Time, told bool) time.Time {
	images, labels := batch[0], batch[1]
	w.sgd.ZeroGrad()
	logp := w.Net.Forward(w.scope.Const(images))
	loss := nn.NLLLoss{}.Of(logp, labels)
	if told {
		w.said.Accuracy = float64(countHits(logp.T(), labels)) / float64(max(1, labels.Numel()))
	}
	at = w.recordSpan("forward", at)
	loss.Backward()
	at = w.recordSpan("backward", at)
	w.sgd.Step()
	w.said.Loss = loss.Item()
	n := labels.Numel()
	w.said.Done += n
	w.said.Total += n
	w.scope.Reset()
	return w.recordSpan("step", at)
}

// recordSpan records a span from begin to now in the trace and returns its end, which is the
// begin of the next span.
func (w *worker) recordSpan(name string, begin time.Time) time.Time {
	end := w.track.Now()
	w.track.Span(name, begin, end)
	return end
}
