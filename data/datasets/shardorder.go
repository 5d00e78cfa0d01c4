package datasets

import (
	"context"
	"errors"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/internal/seed"
)

// ShardOptions configure the order of samples in shards. The zero value reads the shards, and the
// samples in them, sequentially.
type ShardOptions struct {
	// Shuffle, if not 0, reads the shards in a random order, and draws the samples of each part of
	// the stream at random from a buffer of Shuffle records, as WebDataset's shardshuffle and
	// shuffle do. The order depends on the seed and the epoch of the Loader, and on the part. A
	// buffer holds the records in their encoded form. A negative value is an error of the first
	// sample.
	Shuffle int

	// Equal gives each part of the stream the same number of samples, by dividing the samples
	// instead of the shards. If the number of parts does not divide the number of samples, the last
	// samples are left out. All ranks then have the same number of samples if the number of parts
	// is a multiple of World. To count the samples, each process reads the headers of all shards
	// once.
	Equal bool
}

// Samples yields the samples of a part, in the order that d.Options selects. An error concerns
// one sample, or a shard, which ends with it; then the sequence continues. With Equal, a shard
// that cannot be counted ends the sequence.
func (d *shards) Samples(ctx context.Context, p data.Part) iter.Seq2[data.Sample, error] {
	return func(yield func(data.Sample, error) bool) {
		if d.Options.Shuffle < 0 {
			yield(nil, errShuffle)
			return
		}
		order := d.Paths
		mix := data.SampleSeed(ctx, -1) // depends only on the seed and the epoch
		if d.Options.Shuffle > 0 {
			order = make([]string, len(d.Paths))
			for to, from := range rand.New(rand.NewPCG(mix, 0)).Perm(len(d.Paths)) {
				order[to] = d.Paths[from]
			}
		}
		records := d.dealtRecords(order, p)
		if d.Options.Equal {
			records = d.equalRecords(order, p)
		}
		if d.Options.Shuffle > 1 {
			rng := rand.New(rand.NewPCG(mix, seed.Spread(uint64(p.Index)+1)))
			records = shuffleRecords(records, d.Options.Shuffle, rng)
		}
		for r, err := range records {
			var s data.Sample
			if err == nil {
				s, err = d.decode(ctx, r)
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

var errShuffle = errors.New("datasets: got a negative ShardOptions.Shuffle, want at least 0")

// A shardRecord is a record and the path of its shard.
type shardRecord struct {
	Record
	path string
}

// dealtRecords yields the records of the shards that belong to a part: every p.Count-th shard in
// order. An error ends its shard only.
func (d *shards) dealtRecords(order []string, p data.Part) iter.Seq2[shardRecord, error] {
	return func(yield func(shardRecord, error) bool) {
		for i, path := range order {
			if !p.Has(i) {
				continue
			}
			for r, err := range Records(path) {
				if err == nil && !d.wantsRecord(r) {
					continue
				}
				if !yield(shardRecord{r, path}, err) {
					return
				}
			}
		}
	}
}

// equalRecords yields a contiguous range of the records of all shards, in order, as the records
// of a part. All parts have the same number of records; the remainder of the division is left
// out. If the records of a shard cannot be counted, it yields the error and ends.
func (d *shards) equalRecords(order []string, p data.Part) iter.Seq2[shardRecord, error] {
	return func(yield func(shardRecord, error) bool) {
		counts, total := make([]int, len(order)), 0
		for i, path := range order {
			n, err := d.countSamples(path)
			if err != nil {
				yield(shardRecord{}, err)
				return
			}
			counts[i], total = n, total+n
		}
		each := total / p.Count
		begin, end, at := p.Index*each, (p.Index+1)*each, 0 // at: first record of the shard
		for i, path := range order {
			first := at
			if at += counts[i]; at <= begin || first >= end {
				continue
			}
			k := first
			for r, err := range Records(path) {
				if err == nil && !d.wantsRecord(r) {
					continue
				}
				if k++; err == nil && k <= begin {
					continue
				}
				if k > end {
					break
				}
				if !yield(shardRecord{r, path}, err) {
					return
				}
			}
		}
	}
}

// A shardVersion identifies the version of a shard when its records were counted.
type shardVersion struct {
	path string
	size int64
	time time.Time
	all  bool // also counts records that the decoder would skip
}

// shardCounts caches the number of records by shardVersion.
var shardCounts sync.Map

// countSamples returns the number of samples in a shard: its records that d.wantsRecord selects.
// It reads the shard unless an earlier count of the same version of the file is cached.
func (d *shards) countSamples(path string) (int, error) {
	st, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	_, some := d.Decoder.Value.(recordFilter)
	v := shardVersion{path, st.Size(), st.ModTime(), !some}
	if n, ok := shardCounts.Load(v); ok {
		return n.(int), nil
	}
	n := 0
	for r, err := range readShard(path, true) {
		if err != nil {
			return 0, err
		}
		if d.wantsRecord(r) {
			n++
		}
	}
	shardCounts.Store(v, n)
	return n, nil
}

// shuffleRecords yields records in a random order. Each is drawn from a buffer of n records. An
// error is yielded at once, ahead of the buffered records. n must be positive.
func shuffleRecords(records iter.Seq2[shardRecord, error], n int, rng *rand.Rand) iter.Seq2[shardRecord, error] {
	return func(yield func(shardRecord, error) bool) {
		var buffer []shardRecord
		for r, err := range records {
			if err != nil {
				if !yield(r, err) {
					return
				}
				continue
			}
			if len(buffer) < n {
				buffer = append(buffer, r)
				continue
			}
			k := rng.IntN(n)
			r, buffer[k] = buffer[k], r
			if !yield(r, nil) {
				return
			}
		}
		rng.Shuffle(len(buffer), func(i, j int) { buffer[i], buffer[j] = buffer[j], buffer[i] })
		for _, r := range buffer {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// A recordFilter is a [Decoder] that selects records by the names of their files.
type recordFilter interface{ wantsRecord(r Record) bool }

// wantsRecord reports whether a record is a sample rather than, for example, a description of the
// data set.
func (d *shards) wantsRecord(r Record) bool {
	f, ok := d.Decoder.Value.(recordFilter)
	return !ok || f.wantsRecord(r)
}

// skipTo reads and discards bytes up to offset, which must not be before the current position.
// It returns [data.ErrTruncated] if the file is shorter.
func skipTo(in *counter, offset int64) error {
	_, err := io.CopyN(io.Discard, in, offset-in.n)
	return truncatedError(err)
}
