package bench

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/shoal-mp/shoal/encoding/hdf5"
	"github.com/shoal-mp/shoal/encoding/msgpack"
	"github.com/shoal-mp/shoal/encoding/npy"
	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/encoding/safetensors"
	"github.com/shoal-mp/shoal/internal/numpy"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/tensor"
)

var files = Suite{
	Name:   "files",
	Doc:    "one tensor to a file in memory and back, in each format, compared with a queue, a pipe and a copy",
	peer:   "torch_files.py",
	groups: []func(context.Context, *environment) (group, error){wayRows, fileRows(0, 15), fileRows(1, 3)},
}

// A fileFormat saves a tensor to a file and loads it, either by reading or by mapping the file.
type fileFormat struct {
	name      string
	save      func(path string, t *tensor.Tensor) error
	load, see func(path string) (*tensor.Tensor, error) // see maps the file; may be nil
	slow      bool                                      // large files are measured once
}

var fileFormats = []fileFormat{
	{name: "pickle", save: savePickle, load: loadPickle},
	{name: "msgpack", save: func(path string, t *tensor.Tensor) error { return msgpack.Save(path, namedTensors(t)) },
		load: func(path string) (*tensor.Tensor, error) { return onlyTensor(loadMsgpack(path)) }},
	{name: "npy", save: npy.Save[*tensor.Tensor], load: npy.Load, see: npy.Map},
	{name: "hdf5", save: saveHDF5(hdf5.Options{}),
		load: func(path string) (*tensor.Tensor, error) { return onlyTensor(hdf5.Load(path)) }},
	{name: "hdf5_gzip", save: saveHDF5(hdf5.Options{Shuffle: true, Gzip: 4}),
		load: func(path string) (*tensor.Tensor, error) { return onlyTensor(hdf5.Load(path)) }, slow: true},
	{name: "safetensors",
		save: func(path string, t *tensor.Tensor) error { return safetensors.Save(path, namedTensors(t)) },
		load: loadSafetensors((*safetensors.File).Tensor), see: loadSafetensors((*safetensors.File).Map)},
	{name: "pt", save: func(path string, t *tensor.Tensor) error { return pt.Save(path, namedTensors(t)) },
		load: loadPT(pt.Options{}), see: loadPT(pt.Options{Mmap: true})},
}

func namedTensors(t *tensor.Tensor) map[string]*tensor.Tensor {
	return map[string]*tensor.Tensor{"x": t}
}

func onlyTensor(all map[string]*tensor.Tensor, err error) (*tensor.Tensor, error) {
	return all["x"], err
}

// savePickle replaces the file path by a pickle of t as a numpy array, as Python's pickle module
// writes it with protocol 4.
func savePickle(path string, t *tensor.Tensor) error {
	return safefile.Replace(path, func(f *os.File) error {
		return pickle.Write(f, &pickle.Array{DType: numpy.Descr(t.DType().String()), Shape: t.Shape(),
			Data: tensor.Bytes(t)}, 4)
	})
}

func loadPickle(path string) (*tensor.Tensor, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	v, err := pickle.Read(f, info.Size(), nil, pickle.Limits{})
	a, ok := v.(*pickle.Array)
	if err != nil || !ok {
		return nil, errors.Join(err, errors.ErrUnsupported)
	}
	return tensor.FromSlice(a.Data, len(a.Data)), nil
}

func saveHDF5(o hdf5.Options) func(string, *tensor.Tensor) error {
	return func(path string, t *tensor.Tensor) error { return hdf5.SaveWith(path, namedTensors(t), o) }
}

func loadSafetensors(get func(*safetensors.File, string) (*tensor.Tensor, error)) func(string) (*tensor.Tensor, error) {
	return func(path string) (*tensor.Tensor, error) {
		f, err := safetensors.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return get(f, "x")
	}
}

func loadPT(o pt.Options) func(string) (*tensor.Tensor, error) {
	return func(path string) (*tensor.Tensor, error) {
		v, err := pt.Load(path, o)
		if err != nil {
			return nil, err
		}
		state, _, err := pt.StateDict(v)
		return onlyTensor(state, err)
	}
}

// A fileSize is a tensor size in bytes and its name.
type fileSize struct {
	name string
	size int
}

func (h *environment) fileSizes() []fileSize {
	large := 256 * mib
	if h.quick {
		large = mib
	}
	return []fileSize{{"1MiB", mib}, {"256MiB", large}}
}

// fileRows returns a constructor of the rows that save, load and map a tensor in each format,
// with rounds samples for each row. nth is an index into [environment.fileSizes]. The files are
// in /dev/shm if it exists, so that the disk has no influence.
func fileRows(nth, rounds int) func(context.Context, *environment) (group, error) {
	return func(_ context.Context, h *environment) (group, error) { return h.fileGroup(h.fileSizes()[nth], rounds) }
}

func (h *environment) fileGroup(s fileSize, rounds int) (group, error) {
	dir, err := os.MkdirTemp("/dev/shm", "shoal-bench-")
	if err != nil {
		dir, err = os.MkdirTemp("", "shoal-bench-")
	}
	if err != nil {
		return group{}, err
	}
	g := group{rounds: rounds, close: func() error { return os.RemoveAll(dir) }}
	x := tensor.Arange(tensor.Float32, 0, float64(s.size/4), 1)
	path := filepath.Join(dir, s.name)
	for _, f := range fileFormats {
		once := f.slow && s.size > mib
		row := func(what string, measure func() (time.Duration, error)) {
			g.cases = append(g.cases, Case{
				Name: f.name + "_" + what + "_" + s.name, Unit: Nanoseconds,
				Ours: &Probe{Once: once, Measure: func(context.Context) (float64, error) {
					d, err := measure()
					return float64(d), errors.Join(err, os.Remove(path))
				}},
				Peer: &peerWork{op: what + "_" + f.name, Size: s.size, Rounds: 1, once: once},
			})
		}
		row("save", func() (time.Duration, error) { return timeRounds(1, func() error { return f.save(path, x) }) })
		row("load", f.measureLoad(f.load, path, x))
		if f.see != nil {
			row("map", f.measureLoad(f.see, path, x))
		}
	}
	return g, nil
}

// measureLoad returns a function that saves x to the file path, and then loads it with load and
// returns only the duration of load. Pages of a mapped tensor are not touched. The function
// leaves the file.
func (f fileFormat) measureLoad(load func(string) (*tensor.Tensor, error), path string,
	x *tensor.Tensor) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		if err := f.save(path, x); err != nil {
			return 0, err
		}
		var got *tensor.Tensor
		d, err := timeRounds(1, func() (err error) {
			got, err = load(path)
			return err
		})
		if err == nil {
			err = got.Close()
		}
		return d, err
	}
}

// wayRows returns rows of transfers without files: a round trip of a shared tensor through a
// queue, bytes through a pipe, and a copy.
func wayRows(ctx context.Context, h *environment) (group, error) {
	return pairedGroup(ctx, h, 5, func(p *pair) (cases []Case) {
		for _, s := range h.fileSizes() {
			cases = append(cases,
				Case{Name: "queue_rtt_" + s.name, Unit: Nanoseconds,
					Ours: p.probe(order{Work: "tensor_rtt", Rounds: h.spinRounds(20_000), Size: s.size})},
				Case{Name: "copy_" + s.name, Unit: Nanoseconds,
					Ours: p.probe(order{Work: "memcpy", Rounds: h.scaleRounds(5), Size: s.size})},
				Case{Name: "pipe_" + s.name, Unit: Nanoseconds,
					Ours: &Probe{Measure: func(context.Context) (float64, error) { return measurePipe(s.size) }},
					Peer: &peerWork{op: "pipe", Size: s.size, Rounds: 1}})
		}
		return cases
	})
}

// measurePipe returns the nanoseconds that the transfer of size bytes through a pipe takes, into
// memory that is already allocated.
func measurePipe(size int) (float64, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	from, to := make([]byte, size), make([]byte, size)
	sent := make(chan error, 1)
	d, err := timeRounds(1, func() error {
		go func() {
			_, err := w.Write(from)
			sent <- errors.Join(err, w.Close())
		}()
		_, err := io.ReadFull(r, to)
		return errors.Join(err, <-sent)
	})
	return float64(d), err
}

// loadMsgpack returns the tensors of a MessagePack file by their names. The caller must close
// them.
func loadMsgpack(path string) (map[string]*tensor.Tensor, error) {
	all, _, err := msgpack.Load(path, msgpack.Options{})
	return all, err
}
