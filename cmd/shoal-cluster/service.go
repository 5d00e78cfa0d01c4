package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shoal-mp/shoal/cmd/internal/bench"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/data/service"
	"github.com/shoal-mp/shoal/internal/sys"
)

// measureKey need not be secret: only processes of this measurement use it.
var measureKey = []byte("a measurement on the loopback")

// newImageLoader returns the loader that both the data host and the local process use: batches of
// 32 JPEG files from dir. The caller must close it.
func newImageLoader(dir string) (*data.Loader, error) {
	set, err := datasets.NewImageFolder(dir)
	if err != nil {
		return nil, err
	}
	return data.NewLoader(set, data.Options{BatchSize: 32, Shuffle: true, Seed: 1, Workers: sys.CPUs()}), nil
}

// dataHostCommand runs the data host of the measurement.
type dataHostCommand struct {
	Unencrypted bool `long:"unencrypted" description:"Without TLS."`
	Args        struct {
		Dir string `positional-arg-name:"directory"`
	} `positional-args:"yes" required:"yes"`
}

// Run prints the data host's address and serves until standard input reaches EOF.
func (c *dataHostCommand) Run(context.Context) (err error) {
	l, err := newImageLoader(c.Args.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	h, err := service.Listen(l, "127.0.0.1:0", service.HostOptions{Key: measureKey, Unencrypted: c.Unencrypted})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	fmt.Println(h.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// epochsCommand runs the trainer of the measurement. It reads one epoch for each line of standard
// input.
type epochsCommand struct {
	Addr string `long:"addr" description:"Address of a data host."`
	Dir  string `long:"dir" description:"Directory for a local loader."`

	Unencrypted bool `long:"unencrypted" description:"Without TLS."`
}

// Run reads one epoch for each line of standard input, and prints its samples per second.
func (c *epochsCommand) Run(ctx context.Context) (err error) {
	var l interface {
		Batches(context.Context) iter.Seq2[data.Batch, error]
		io.Closer
	}
	if c.Dir != "" {
		l, err = newImageLoader(c.Dir)
	} else {
		l, err = service.Dial(ctx, service.Options{Key: measureKey, Unencrypted: c.Unencrypted}, c.Addr)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		r, err := measureRate(l.Batches(ctx))
		if err != nil {
			return err
		}
		fmt.Println(r)
	}
	return nil
}

// compareService compares the batches of a data host with a local loader of the same files. Each
// runs in its own process. First all processes may use all processors. Then two machines are
// simulated: the data host and its trainer get half of the processors each, and the local loader
// gets the data host's half. Each setup is measured with TLS and without.
func (c *benchCommand) compareService(ctx context.Context) (err error) {
	files := 1000
	if c.Quick {
		files = 64
	}
	dir, err := os.MkdirTemp("", "shoal-cluster-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := bench.WriteImages(dir, "jpeg", files); err != nil {
		return err
	}
	if err := c.serviceRows(ctx, "data_service_jpeg", dir, files, nil, nil); err != nil {
		return err
	}
	half := sys.CPUs() / 2
	if _, err := exec.LookPath("taskset"); err != nil || half == 0 {
		fmt.Fprintln(os.Stderr, "data host on separate CPUs not measured: it needs taskset and two CPUs")
		return nil
	}
	return c.serviceRows(ctx, "data_service_jpeg_apart", dir, files,
		[]string{"taskset", "-c", fmt.Sprintf("0-%d", half-1)},
		[]string{"taskset", "-c", fmt.Sprintf("%d-%d", half, 2*half-1)})
}

// serviceRows measures one setup with and without TLS and prints the rows row and row_unencrypted.
// dir must be a directory of files images. host and trainer are command prefixes such as taskset;
// the local loader gets the prefix host as well.
func (c *benchCommand) serviceRows(ctx context.Context, row, dir string, files int, host, trainer []string) error {
	if err := c.serviceRow(ctx, row, dir, files, host, trainer); err != nil {
		return err
	}
	return c.serviceRow(ctx, row+"_unencrypted", dir, files, host, trainer, "--unencrypted")
}

func (c *benchCommand) serviceRow(ctx context.Context, row, dir string, files int, host, trainer []string,
	flags ...string) (err error) {
	served, err := startProgram(ctx, host, append([]string{"datahost", dir}, flags...)...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, served.closeProgram()) }()
	addr, err := served.read()
	if err != nil {
		return err
	}
	far, err := startProgram(ctx, trainer, append([]string{"epochs", "--addr", addr}, flags...)...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, far.closeProgram()) }()
	near, err := startProgram(ctx, host, "epochs", "--dir", dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, near.closeProgram()) }()
	return c.compare(ctx, row, "samples/s", float64(files),
		way{"data_service", far.readEpoch, map[string]int{"host": served.pid(), "trainer": far.pid()}},
		way{"local_loader", near.readEpoch, map[string]int{"loader": near.pid()}})
}

// A program is a child process that runs a subcommand of this program and is controlled by lines on
// its standard input.
type program struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startProgram starts this program with args, prefixed by the command front. The caller must call
// [program.closeProgram].
func startProgram(ctx context.Context, front []string, args ...string) (p *program, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args = slices.Concat(front, []string{self}, args)
	p = &program{cmd: exec.CommandContext(ctx, args[0], args[1:]...)}
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	return p, p.cmd.Start()
}

// read returns the next line of the program's output. It returns an error if the program has ended.
func (p *program) read() (string, error) {
	line, err := p.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("%q exited: %w", p.cmd.Args, err)
	}
	return strings.TrimSpace(line), nil
}

// pid returns the process ID of the program. A prefix such as taskset executes the program in its
// own process, so the ID is the same.
func (p *program) pid() int { return p.cmd.Process.Pid }

// readEpoch makes the program read one epoch and returns its samples per second.
func (p *program) readEpoch(context.Context) (float64, error) {
	if _, err := fmt.Fprintln(p.in); err != nil {
		return 0, err
	}
	line, err := p.read()
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(line, 64)
}

// closeProgram closes the program's standard input and waits for it to exit.
func (p *program) closeProgram() error { return errors.Join(p.in.Close(), p.cmd.Wait()) }

// measureRate reads one epoch, closing its batches, and returns the samples per second. An epoch
// without samples is an error.
func measureRate(batches iter.Seq2[data.Batch, error]) (float64, error) {
	begin, n := time.Now(), 0
	for b, err := range batches {
		if err != nil {
			return 0, err
		}
		n += b[0].Dim(0)
		b.Close()
	}
	if n == 0 {
		return 0, errors.New("got an epoch without samples")
	}
	return float64(n) / time.Since(begin).Seconds(), nil
}
