package download

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"testing"
	"time"
)

// SetPatience has a silent server be left sooner, until the test ends.
func SetPatience(t *testing.T, d time.Duration) {
	before := patience
	patience = d
	t.Cleanup(func() { patience = before })
}

// Fetch fetches one file of known contents.
func Fetch(ctx context.Context, client *http.Client, name string, contents []byte, dir string,
	opts Options) error {
	sum := sha256.Sum256(contents)
	f := file{name, int64(len(contents)), hex.EncodeToString(sum[:])}
	return fetchAll(ctx, client, []file{f}, dir, opts)
}

// Files returns the names of MNIST's files.
func Files() (names []string) {
	for _, f := range mnist {
		names = append(names, f.name)
	}
	return names
}
