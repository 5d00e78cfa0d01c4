package download

import (
	"context"
	"fmt"
	"net/http"
	"os"
)

// Mirror is where MNIST is fetched from unless another place is given: PyTorch's own copy.
const Mirror = "https://ossci-datasets.s3.amazonaws.com/mnist/"

// A file is what is known of a file before it is fetched.
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

// Progress is told how many bytes of a file are there, of how many in all.
type Progress func(name string, done, total int64)

// MNIST fetches the four files of MNIST, 11.6 MB, into dir, which it makes if need be. mirror is
// the URL of a directory that has them; "" means Mirror. Files that are there already, by their
// checksum, are not fetched again, and a file that came in part is continued; so after an error
// that wraps ErrPartial, call it again. A file gets its name only when it is whole and its checksum
// is right. progress may be nil; it is called in the caller's goroutine.
func MNIST(ctx context.Context, dir, mirror string, progress Progress) error {
	if mirror == "" {
		mirror = Mirror
	}
	return fetchAll(ctx, http.DefaultClient, mnist, dir, mirror, progress)
}

func fetchAll(ctx context.Context, client *http.Client, files []file, dir, mirror string, progress Progress) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the directory of a data set: %w", err)
	}
	if progress == nil {
		progress = func(string, int64, int64) {}
	}
	for _, f := range files {
		d := fetch{file: f, client: client, dir: dir, mirror: mirror, progress: progress}
		if err := d.run(ctx); err != nil {
			return fmt.Errorf("fetch %s: %w", f.name, err)
		}
	}
	return nil
}
