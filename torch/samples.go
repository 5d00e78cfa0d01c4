package torch

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strconv"
	"syscall"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/internal/tree"
	"github.com/shoal-mp/shoal/tensor"
)

// Note [Samples for Python] A collate_fn and a worker_init_fn are Python code, which Go does not
// run. A worker with one hands over to Python (see Note [Handing over to Python]), which runs
// PyTorch's own worker loop. Before the loop starts, samples.py, which is embedded in the program,
// gives the data set methods that request its samples over a socket from another process of this
// program. All tensors of a reply lie in one block of shared memory, which Python maps once.

//go:embed samples.py
var samplesForPython string

// samplesFlag is the first argument of the process that serves samples. The second is the
// descriptor of its socket.
const samplesFlag = "--shoal-samples"

// handOverLoader is handOverToPython for a DataLoader worker with a Go data set: Python then
// also starts the sample server. It returns only on an error.
func (s *start) handOverLoader() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	s.code = samplesForPython + fmt.Sprintf("\nbegin(%s, %q)\n", strconv.QuoteToASCII(program), samplesFlag) + s.code
	return s.handOverToPython()
}

// runSampleServer runs the sample server until Python closes the socket, and then returns nil.
// number is the decimal number of the socket's descriptor.
func (c Child) runSampleServer(number string) error {
	fd, err := strconv.Atoi(number)
	if err != nil || fd < 3 {
		return protocolError("socket descriptor is %q, want a number of 3 or more", number)
	}
	conn, err := sys.SocketConn(os.NewFile(uintptr(fd), "samples"))
	if err != nil {
		return err
	}
	exitOnSignals()
	err = c.serveSamples(context.Background(), newConn(conn, Options{}))
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return nil // Python has exited or was killed
	}
	return err
}

// serveSamples answers requests for samples until the connection fails, closes it, and returns
// its error: [io.EOF] if Python has closed it. A failure to load samples is sent to Python and
// does not end the serving.
func (c Child) serveSamples(ctx context.Context, conn *Conn) error {
	defer conn.Close()
	key, err := conn.RecvBytes(ctx)
	if err != nil {
		return err
	}
	conn.opts.AuthKey, conn.child = key, true
	processKey = func() []byte { return key }
	w, args, err := c.samplesWorker(ctx, conn)
	if err != nil {
		return err
	}
	defer func() { w.stop() }()
	failed := w.recoverPanic(func() error { return c.openDataset(ctx, w, args) })
	for {
		ask, err := As[python.Tuple](conn.Recv(ctx))
		if err != nil {
			return err
		}
		var answer any
		err = failed
		if err == nil {
			err = w.recoverPanic(func() (err error) {
				answer,
					err = c.serveSampleRequest(ctx, w, args, ask)
				return err
			})
		}
		reply := python.Tuple{err == nil, answer}
		if err != nil {
			reply[1] = "error in Go: " + err.Error()
		}
		err = conn.Send(ctx, reply)
		CloseAll(answer)
		if err != nil {
			return err
		}
	}
}

// samplesWorker receives the description of the Python worker: the kind of data set, the data
// set, the base seed, the worker's ID and the number of workers. It returns a worker for it, and
// the worker's arguments up to argDataset.
func (c Child) samplesWorker(ctx context.Context, conn *Conn) (*loaderWorker, python.Tuple, error) {
	said, err := receiveFromScript(ctx, conn)
	if err != nil {
		return nil, nil, err
	}
	var own struct {
		_                 struct{} `torch:",tuple"`
		Kind, Dataset     any
		Seed, ID, Workers int64
	}
	if err := assign(&own, said); err != nil {
		return nil, nil, fmt.Errorf("decode request of a sample worker: %w", err)
	}
	args := make(python.Tuple, argDataset+1)
	args[argKind], args[argDataset] = own.Kind, own.Dataset
	w := &loaderWorker{stop: func() error { return nil }, raw: true, collate: true}
	w.Row = func() (data.Batch, int) { return nil, 0 }
	w.ID, w.Workers, w.Seed = int(own.ID), int(own.Workers), own.Seed+own.ID
	w.info = data.Info{ID: w.ID, Workers: w.Workers, Seed: uint64(own.Seed)}
	return w, args, nil
}

// receiveFromScript receives a value from a spawned Python process, where the classes of the
// script belong to the module __mp_main__. It renames the module to __main__, as in the script's
// own process. The caller must close the value with [CloseAll].
func receiveFromScript(ctx context.Context, conn *Conn) (any, error) {
	b, err := conn.RecvBytes(ctx)
	if err != nil {
		return nil, err
	}
	return conn.importer().startUnpacking(ctx, b, func(o *pickle.Object) {
		if o.Class.Module == "__mp_main__" {
			o.Class.Module = "__main__"
		}
	}).awaitValue(ctx)
}

// serveSampleRequest serves the request ask: "get" or "batch" with indices, "begin" and "next"
// with a number of samples, "describe", or "list". Each request also carries the epoch. The
// samples of "batch" are those that Python collates to a batch, so a data set may pad them. At
// the end of a stream, "next" returns an empty list. args are the arguments of the worker. The
// caller must close the result with [CloseAll].
func (c Child) serveSampleRequest(ctx context.Context, w *loaderWorker, args, ask python.Tuple) (any, error) {
	if len(ask) < 2 {
		return nil, protocolError("request for samples has %d parts, want at least 2", len(ask))
	}
	var epoch int
	if err := assign(&epoch, ask[1]); err != nil {
		return nil, err
	}
	w.info.Epoch, w.rows = epoch, ask[0] == "batch"
	switch {
	case ask[0] == "describe" && len(ask) == 3:
		return c.describe(ctx, w, args, ask[2] == true)
	case ask[0] == "list":
		return w.listImages()
	case ask[0] == "begin":
		return nil, c.openDataset(ctx, w, args)
	case (ask[0] == "get" || ask[0] == "batch") && len(ask) == 3:
		return w.fetch(ctx, ask[2])
	case ask[0] == "next" && len(ask) == 3:
		n, ok := ask[2].(int64)
		if !ok || n < 1 || n > mostSamples {
			return nil, protocolError("request for %v samples, out of range", ask[2])
		}
		samples, err := w.fetch(ctx, make([]any, n))
		if err == errStreamEnds {
			return []any{}, nil
		}
		return samples, err
	}
	return nil, protocolError("%v samples", ask[0])
}

// describe returns the length and class names of a data set in a dict, as a probe does. They are
// None for a stream, which describe opens. If try is true, and for a stream, it also loads the
// first sample, so that a wrong option or file is an error.
func (c Child) describe(ctx context.Context, w *loaderWorker, args python.Tuple, try bool) (any, error) {
	about := python.NewDict("len", nil, "classes", nil)
	if args[argKind] == int64(kindStream) {
		w.Trial, try = true, true
		defer func() { w.Trial = false }()
		if err := c.openDataset(ctx, w, args); err != nil {
			return nil, err
		}
	} else {
		p := describeDataset(w.info.Dataset.(data.Dataset))
		about.Set("len", int64(p.Len))
		if p.Classes != nil {
			about.Set("classes", sequence(p.Classes, false))
		}
		try = try && p.Len > 0
	}
	if try {
		sample, err := w.fetch(ctx, []any{int64(0)})
		CloseAll(sample)
		if err != nil && err != errStreamEnds {
			return nil, err
		}
	}
	return about, nil
}

// listImages returns the tuple of the paths of the images of a folder, relative to it, and of
// their classes. The error wraps [ErrUnsupported] if the data set is no [datasets.ImageFolder].
func (w *loaderWorker) listImages() (any, error) {
	d, ok := w.info.Dataset.(*datasets.ImageFolder)
	if !ok {
		return nil, unsupported("data set is %T, which has no list of images", w.info.Dataset)
	}
	paths, labels := make([]any, d.Len()), make([]any, d.Len())
	for i, label := range tensor.Data[int64](d.Labels) {
		name, err := d.Paths.At(i)
		if err != nil {
			return nil, err
		}
		paths[i], labels[i] = string(name), label
	}
	return python.Tuple{paths, labels}, nil
}

// mostSamples is the largest number of stream samples in one request.
const mostSamples = 1 << 10

// samplesToPython converts samples to the list of values that a Python data set would return. A
// [data.Sample] becomes a tuple. numbers are the indices of the samples for errors, or nil. The
// tensors are copied to one block that PyTorch can map; the caller must close the copies.
func samplesToPython(samples []any, numbers []int) (any, error) {
	flat, shared := make([]tree.Value, len(samples)), new(piece)
	for k, v := range samples {
		if s, ok := v.(data.Sample); ok {
			v = tupleOf(s)
		}
		f, err := tree.Flatten(v, tree.Rules{})
		if err == nil {
			err = shared.add(f)
		}
		if err != nil {
			return nil, wrapSampleError(k, numbers, err)
		}
		flat[k] = f
	}
	if err := shared.copyTensors(); err != nil {
		return nil, err
	}
	list := make([]any, len(samples))
	for k := range flat {
		v, err := toPython(flat[k], true)
		if err != nil {
			CloseAll(list)
			return nil, err
		}
		list[k] = v
	}
	return list, nil
}

// tupleOf returns the tensors of a sample as an array, which is encoded as a tuple.
func tupleOf(s data.Sample) any {
	array := reflect.New(reflect.ArrayOf(len(s), reflect.TypeFor[*tensor.Tensor]())).Elem()
	reflect.Copy(array, reflect.ValueOf(s))
	return array.Interface()
}

// A piece collects tensors in order to copy them into one block of memory that PyTorch can map.
// The zero value is empty.
type piece struct {
	of   []**tensor.Tensor
	from []int
	size int
}

// add collects the tensors of a value, except those that represent numbers and strings.
// copyTensors replaces them in v.Tensors.
func (g *piece) add(v tree.Value) error {
	n, err := tree.Parse(v.Spec)
	if err != nil {
		return err
	}
	at := 0
	n.Leaves(func(leaf *tree.Node) {
		if leaf.Kind == tree.Tensor {
			g.size = (g.size + cacheLine - 1) / cacheLine * cacheLine
			g.of, g.from = append(g.of, &v.Tensors[at]), append(g.from, g.size)
			g.size += v.Tensors[at].Nbytes()
		}
		at += leaf.Tensors()
	})
	return nil
}

// cacheLine is the alignment of the tensors in a block, in bytes.
const cacheLine = 64

// copyTensors copies the tensors into a new block, and replaces each by its copy, which the
// caller must close. It does not close the originals.
func (g *piece) copyTensors() error {
	block, err := Empty(tensor.Uint8, g.size)
	if err != nil {
		return err
	}
	defer block.Close()
	for k, t := range g.of {
		dt, shape := (*t).DType(), (*t).Shape()
		own, err := block.Storage().View(dt, shape, rowMajorStrides(shape), g.from[k]/dt.Size())
		if err != nil {
			return err
		}
		*t = own.CopyFrom(*t)
	}
	return nil
}

// rowMajorStrides returns the strides of a contiguous tensor, in elements.
func rowMajorStrides(shape []int) []int {
	strides, step := make([]int, len(shape)), 1
	for i, n := range slices.Backward(shape) {
		strides[i] = step
		step *= max(n, 1)
	}
	return strides
}
