package data

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
)

func init() {
	Register[*ConcatDataset]("data.ConcatDataset")
	Register[*StackDataset]("data.StackDataset")
	Register[*Subset]("data.Subset")
	Register[*ChainDataset]("data.ChainDataset")
}

// gatherFrom has samples of a data set written to rows of a batch, by itself if it is a Gatherer.
// names are what their generators begin with.
func gatherFrom(ctx context.Context, ds Dataset, names, indices []int, into Batch) error {
	if g, ok := ds.(Gatherer); ok {
		return g.Gather(ctx, indices, into)
	}
	w, _ := ctx.Value(sampleContextKey{}).(*sampleContext)
	for k, i := range indices {
		if w != nil {
			w.begin(names[k])
		}
		s, err := ds.Get(ctx, i)
		if err != nil {
			return err
		}
		if err := into.put(k, s); err != nil {
			return err
		}
	}
	return nil
}

// closeDatasets closes those that can be.
func closeDatasets(of []Any[Dataset]) error {
	var errs []error
	for _, d := range of {
		if c, ok := d.Value.(interface{ Close() error }); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

func boxed(of []Dataset) []Any[Dataset] {
	all := make([]Any[Dataset], len(of))
	for i, d := range of {
		all[i] = Any[Dataset]{d}
	}
	return all
}

// outside is the error of a sample that there is not.
func outside(i, n int) error { return fmt.Errorf("sample %d of %d: out of range", i, n) }

// A ConcatDataset is several data sets one after the other.
type ConcatDataset struct {
	Of   []Any[Dataset]
	Ends []int // where each ends: torch's cumulative_sizes
}

var _ Gatherer = (*ConcatDataset)(nil)

// NewConcatDataset makes a ConcatDataset and takes the data sets over: its Close closes them.
func NewConcatDataset(of ...Dataset) *ConcatDataset {
	d := &ConcatDataset{Of: boxed(of)}
	n := 0
	for _, part := range of {
		n += part.Len()
		d.Ends = append(d.Ends, n)
	}
	return d
}

// Len returns the number of samples of all.
func (d *ConcatDataset) Len() int {
	if len(d.Ends) == 0 {
		return 0
	}
	return d.Ends[len(d.Ends)-1]
}

// find returns which data set has sample i, and as which.
func (d *ConcatDataset) find(i int) (part, inside int, err error) {
	if i < 0 || i >= d.Len() {
		return 0, 0, outside(i, d.Len())
	}
	part = sort.SearchInts(d.Ends, i+1)
	if part > 0 {
		i -= d.Ends[part-1]
	}
	return part, i, nil
}

// Get returns a sample.
func (d *ConcatDataset) Get(ctx context.Context, i int) (Sample, error) {
	part, inside, err := d.find(i)
	if err != nil {
		return nil, err
	}
	return d.Of[part].Value.Get(ctx, inside)
}

// Gather writes samples to the rows of a batch, as many at once as follow each other in one data
// set.
func (d *ConcatDataset) Gather(ctx context.Context, indices []int, into Batch) error {
	run, first := []int(nil), 0
	for k := 0; k < len(indices); k++ {
		part, inside, err := d.find(indices[k])
		if err != nil {
			return err
		}
		run = append(run, inside)
		if k+1 < len(indices) {
			if next, _, err := d.find(indices[k+1]); err == nil && next == part {
				continue
			}
		}
		rows := into.rows(first, len(run))
		err = gatherFrom(ctx, d.Of[part].Value, indices[first:], run, rows)
		closeAll(rows)
		if err != nil {
			return err
		}
		run, first = run[:0], k+1
	}
	return nil
}

// Close closes the data sets.
func (d *ConcatDataset) Close() error { return closeDatasets(d.Of) }

// A StackDataset has samples with the fields of several data sets side by side.
type StackDataset struct{ Of []Any[Dataset] }

// NewStackDataset makes a StackDataset of data sets of the same length and takes them over: its
// Close closes them.
func NewStackDataset(of ...Dataset) *StackDataset {
	if len(of) == 0 {
		panic("data: a StackDataset of nothing")
	}
	for _, d := range of {
		if d.Len() != of[0].Len() {
			panic(fmt.Sprintf("data: data sets of %d and %d samples in a StackDataset", of[0].Len(), d.Len()))
		}
	}
	return &StackDataset{boxed(of)}
}

// Len returns the number of samples.
func (d *StackDataset) Len() int { return d.Of[0].Value.Len() }

// Get returns the fields of sample i of each data set.
func (d *StackDataset) Get(ctx context.Context, i int) (Sample, error) {
	var all Sample
	for _, part := range d.Of {
		s, err := part.Value.Get(ctx, i)
		if err != nil {
			return nil, err
		}
		all = append(all, s...)
	}
	return all, nil
}

// Close closes the data sets.
func (d *StackDataset) Close() error { return closeDatasets(d.Of) }

// A Subset is those samples of a data set that Indices says.
type Subset struct {
	Of      Any[Dataset]
	Indices []int
}

var _ Gatherer = (*Subset)(nil)

// NewSubset makes a Subset. It panics if there is no such sample. The maker of the data set closes
// it.
func NewSubset(of Dataset, indices []int) *Subset {
	for _, i := range indices {
		if i < 0 || i >= of.Len() {
			panic("data: NewSubset: " + outside(i, of.Len()).Error())
		}
	}
	return &Subset{Any[Dataset]{of}, indices}
}

// Len returns the number of samples.
func (d *Subset) Len() int { return len(d.Indices) }

// Get returns a sample.
func (d *Subset) Get(ctx context.Context, i int) (Sample, error) {
	if i < 0 || i >= len(d.Indices) {
		return nil, outside(i, len(d.Indices))
	}
	return d.Of.Value.Get(ctx, d.Indices[i])
}

// Gather writes samples to the rows of a batch.
func (d *Subset) Gather(ctx context.Context, indices []int, into Batch) error {
	inside := make([]int, len(indices))
	for k, i := range indices {
		if i < 0 || i >= len(d.Indices) {
			return outside(i, len(d.Indices))
		}
		inside[k] = d.Indices[i]
	}
	return gatherFrom(ctx, d.Of.Value, indices, inside, into)
}

// RandomSplit deals the samples of a data set out to Subsets of the given lengths, at random by the
// seed alone. Lengths are numbers of samples that sum up to its own, or parts of 1 that sum up to
// 1: of what these leave over when they are rounded down, each gets one in turn.
func RandomSplit(of Dataset, lengths []float64, seed uint64) []*Subset {
	n, sum := of.Len(), 0.0
	for _, l := range lengths {
		if l < 0 || math.IsNaN(l) {
			panic(fmt.Sprintf("data: RandomSplit in lengths of %v", lengths))
		}
		sum += l
	}
	counts := make([]int, len(lengths))
	left := n
	parts := math.Abs(sum-1) < 1e-9 && n != 1 ||
		n == 1 && slices.ContainsFunc(lengths, func(l float64) bool { return l != math.Trunc(l) })
	for k, l := range lengths {
		if parts {
			l = math.Floor(float64(n) * l)
		}
		counts[k] = int(l)
		left -= counts[k]
	}
	for k := 0; parts && left > 0; k++ {
		counts[k%len(counts)]++
		left--
	}
	if left != 0 {
		panic(fmt.Sprintf("data: RandomSplit of %d samples in lengths of %v", n, lengths))
	}
	order := rand.New(rand.NewPCG(seed, 0)).Perm(n)
	var all []*Subset
	for _, c := range counts {
		all = append(all, &Subset{Any[Dataset]{of}, order[:c:c]})
		order = order[c:]
	}
	return all
}

// A ChainDataset is several Streams one after the other: of each, the same part.
type ChainDataset struct{ Of []Any[Stream] }

// NewChainDataset makes a ChainDataset.
func NewChainDataset(of ...Stream) *ChainDataset {
	d := new(ChainDataset)
	for _, s := range of {
		d.Of = append(d.Of, Any[Stream]{s})
	}
	return d
}

// Samples yields the samples of the same part of each Stream.
func (d *ChainDataset) Samples(ctx context.Context, p Part) iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		for _, s := range d.Of {
			for sample, err := range s.Value.Samples(ctx, p) {
				if !yield(sample, err) {
					return
				}
			}
		}
	}
}
