package download

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
)

// Mirror is the default URL of MNIST: PyTorch's copy.
const Mirror = "https://ossci-datasets.s3.amazonaws.com/mnist/"

// A file describes a file before it is fetched.
type file struct {
	name   string
	size   int64
	sha256 string
}

var mnist = []file{
	{"train-images-idx3-ubyte.gz", 9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
	{"train-labels-idx1-ubyte.gz", 28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
	{"t10k-images-idx3-ubyte.gz", 1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
	{"t10k-labels-idx1-ubyte.gz", 4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"},
}

// Options are options of a download. The zero value is valid.
type Options struct {
	// Mirror is the URL of a directory that contains the files. The default is [Mirror].
	Mirror string
	// Progress, if not nil, is called in the caller's goroutine with the name of a file, the number
	// of its bytes received so far, and its size.
	Progress func(name string, done, total int64)
}

// MNIST fetches the four files of MNIST, 11.6 MB, into dir, which is created if it does not exist.
// A file that exists with the right checksum is not fetched again, and a partial file is continued.
// A file gets its final name once it is complete and its checksum is verified.
//
// The error wraps [ErrStatus], [ErrPartial] or [ErrChecksum], or is an error of the network, of the
// file system or of ctx. After ErrPartial the caller should call MNIST again. A server that sends
// nothing for 30 seconds counts as disconnected.
func MNIST(ctx context.Context, dir string, opts Options) error {
	return fetchAll(ctx, http.DefaultClient, mnist, dir, opts)
}

func fetchAll(ctx context.Context, client *http.Client, files []file, dir string, opts Options) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create data set directory: %w", err)
	}
	opts.Mirror = cmp.Or(opts.Mirror, Mirror)
	if opts.Progress == nil {
		opts.Progress = func(string, int64, int64) {}
	}
	for _, f := range files {
		d := fetch{file: f, client: client, dir: dir, opts: opts}
		if err := d.run(ctx); err != nil {
			return fmt.Errorf("fetch %s: %w", f.name, err)
		}
	}
	return nil
}
