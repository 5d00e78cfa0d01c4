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

	"github.com/shoal-mp/shoal/internal/codec"
)

func init() {
	codec.RegisterType[*concatDataset]("data.ConcatDataset")
	codec.RegisterType[*stackDataset]("data.StackDataset")
	codec.RegisterType[*subset]("data.Subset")
	codec.RegisterType[*valuedDataset]("data.valuedDataset")
	codec.RegisterType[*chainDataset]("data.ChainDataset")
	codec.RegisterType[*valuedChain]("data.valuedChain")
}

// A combination is a [Dataset] made of other data sets.
type combination interface {
	DatasetCloser
	datasets() []Any[Dataset]
	loadValue(ctx context.Context, i int) (any, error) // sample i as its data sets return it
}

// A valuedDataset is a combination that contains a [ValueDataset], and is therefore one itself.
type valuedDataset struct{ Of Any[combination] }

// wrapValued wraps c in a [valuedDataset] if one of its data sets is a [ValueDataset], and
// returns c otherwise.
func wrapValued(c combination) DatasetCloser {
	if slices.ContainsFunc(c.datasets(), func(d Any[Dataset]) bool { return hasValues(d.Value) }) {
		return &valuedDataset{Any[combination]{c}}
	}
	return c
}

// Len returns the number of samples.
func (d *valuedDataset) Len() int { return d.Of.Value.Len() }

// Get implements [Dataset]. It returns the result of the combination's Get.
func (d *valuedDataset) Get(ctx context.Context, i int) (Sample, error) {
	return d.Of.Value.Get(ctx, i)
}

// Value returns sample i as its data sets return it.
func (d *valuedDataset) Value(ctx context.Context, i int) (any, error) {
	return d.Of.Value.loadValue(ctx, i)
}

// Close closes the data sets that the combination owns.
func (d *valuedDataset) Close() error { return d.Of.Value.Close() }

// gatherFrom writes sample indices[k] of ds to row k of into, with Gather if ds is a [Gatherer].
// names[k] is the index of that sample in the combination, which seeds its random generator; it
// is not used with a Gatherer.
func gatherFrom(ctx context.Context, ds Dataset, names, indices []int, into Batch) error {
	if g, ok := ds.(Gatherer); ok {
		return g.Gather(ctx, indices, into)
	}
	w, _ := ctx.Value(sampleContextKey{}).(*sampleContext)
	for k, i := range indices {
		if w != nil {
			w.setSample(names[k])
		}
		s, err := ds.Get(ctx, i)
		if err != nil {
			return err
		}
		if err := into.copyToRow(k, s); err != nil {
			return err
		}
	}
	return nil
}

// closeDatasets closes the data sets that have a Close method, and joins their errors.
func closeDatasets(of []Any[Dataset]) error {
	var errs []error
	for _, d := range of {
		if c, ok := d.Value.(interface{ Close() error }); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

func boxDatasets(of []Dataset) []Any[Dataset] {
	all := make([]Any[Dataset], len(of))
	for i, d := range of {
		all[i] = Any[Dataset]{d}
	}
	return all
}

// rangeError returns the error for an index i outside of [0, n). It does not check i.
func rangeError(i, n int) error { return fmt.Errorf("sample %d is out of range [0, %d)", i, n) }

// A concatDataset concatenates several data sets.
type concatDataset struct {
	Of   []Any[Dataset]
	Ends []int // end of each data set, as torch's cumulative_sizes
}

var _ Gatherer = (*concatDataset)(nil)

// NewConcatDataset returns the concatenation of several data sets, as torch's ConcatDataset does.
// The result is a [ValueDataset] if one of them is. Its Close closes the data sets.
func NewConcatDataset(of ...Dataset) DatasetCloser {
	d := &concatDataset{Of: boxDatasets(of)}
	n := 0
	for _, part := range of {
		n += part.Len()
		d.Ends = append(d.Ends, n)
	}
	return wrapValued(d)
}

// Len returns the number of samples in all data sets.
func (d *concatDataset) Len() int {
	if len(d.Ends) == 0 {
		return 0
	}
	return d.Ends[len(d.Ends)-1]
}

// find returns the position in d.Of of the data set that contains sample i, and the index of the
// sample in it. It returns an error if i is out of range.
func (d *concatDataset) find(i int) (part, inside int, err error) {
	if i < 0 || i >= d.Len() {
		return 0, 0, rangeError(i, d.Len())
	}
	part = sort.SearchInts(d.Ends, i+1)
	if part > 0 {
		i -= d.Ends[part-1]
	}
	return part, i, nil
}

// Get returns sample i. It returns an error if i is out of range.
func (d *concatDataset) Get(ctx context.Context, i int) (Sample, error) {
	part, inside, err := d.find(i)
	if err != nil {
		return nil, err
	}
	return d.Of[part].Value.Get(ctx, inside)
}

// Gather writes sample indices[k] to row k of into. Consecutive samples of one data set are
// gathered with one call. It returns an error if an index is out of range.
func (d *concatDataset) Gather(ctx context.Context, indices []int, into Batch) error {
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
		rows := into.viewRows(first, len(run))
		err = gatherFrom(ctx, d.Of[part].Value, indices[first:], run, rows)
		closeAll(rows)
		if err != nil {
			return err
		}
		run, first = run[:0], k+1
	}
	return nil
}

func (d *concatDataset) datasets() []Any[Dataset] { return d.Of }

func (d *concatDataset) loadValue(ctx context.Context, i int) (any, error) {
	part, inside, err := d.find(i)
	if err != nil {
		return nil, err
	}
	return Value(ctx, d.Of[part].Value, inside)
}

// Close closes the data sets.
func (d *concatDataset) Close() error { return closeDatasets(d.Of) }

// A stackDataset combines data sets of equal length: sample i has the fields of sample i of each
// of them.
type stackDataset struct{ Of []Any[Dataset] }

// NewStackDataset returns a data set in which sample i has the fields of sample i of each given
// data set, as torch's StackDataset does. If one of them is a [ValueDataset], so is the result, and
// a value is the list of their values. Its Close closes the data sets. NewStackDataset panics if
// there is no data set, or if their lengths differ.
func NewStackDataset(of ...Dataset) DatasetCloser {
	if len(of) == 0 {
		panic("data: StackDataset: got no data sets, want at least 1")
	}
	for _, d := range of {
		if d.Len() != of[0].Len() {
			panic(fmt.Sprintf("data: StackDataset: got data sets of %d and %d samples, want equal lengths",
				of[0].Len(), d.Len()))
		}
	}
	return wrapValued(&stackDataset{boxDatasets(of)})
}

// Len returns the number of samples.
func (d *stackDataset) Len() int { return d.Of[0].Value.Len() }

// Get returns the fields of sample i of each data set.
func (d *stackDataset) Get(ctx context.Context, i int) (Sample, error) {
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

func (d *stackDataset) datasets() []Any[Dataset] { return d.Of }

func (d *stackDataset) loadValue(ctx context.Context, i int) (any, error) {
	all := make([]any, len(d.Of))
	for k, part := range d.Of {
		v, err := Value(ctx, part.Value, i)
		if err != nil {
			return nil, err
		}
		all[k] = v
	}
	return all, nil
}

// Close closes the data sets.
func (d *stackDataset) Close() error { return closeDatasets(d.Of) }

// A subset consists of selected samples of a data set.
type subset struct {
	Of      Any[Dataset]
	Indices []int
}

var _ Gatherer = (*subset)(nil)

// NewSubset returns a data set that selects samples of another one, in the order of indices, as
// torch's Subset does. The result is a [ValueDataset] if of is. The caller must not modify indices
// afterwards, and must still close of. NewSubset panics if an index is out of range.
func NewSubset(of Dataset, indices []int) Dataset {
	for _, i := range indices {
		if i < 0 || i >= of.Len() {
			panic("data: NewSubset: " + rangeError(i, of.Len()).Error())
		}
	}
	return wrapValued(&subset{Any[Dataset]{of}, indices})
}

// Len returns the number of samples.
func (d *subset) Len() int { return len(d.Indices) }

// Get returns sample i of the subset. It returns an error if i is out of range.
func (d *subset) Get(ctx context.Context, i int) (Sample, error) {
	if i < 0 || i >= len(d.Indices) {
		return nil, rangeError(i, len(d.Indices))
	}
	return d.Of.Value.Get(ctx, d.Indices[i])
}

// Gather writes sample indices[k] of the subset to row k of into. It returns an error if an
// index is out of range.
func (d *subset) Gather(ctx context.Context, indices []int, into Batch) error {
	inside := make([]int, len(indices))
	for k, i := range indices {
		if i < 0 || i >= len(d.Indices) {
			return rangeError(i, len(d.Indices))
		}
		inside[k] = d.Indices[i]
	}
	return gatherFrom(ctx, d.Of.Value, indices, inside, into)
}

func (d *subset) datasets() []Any[Dataset] { return []Any[Dataset]{d.Of} }

func (d *subset) loadValue(ctx context.Context, i int) (any, error) {
	if i < 0 || i >= len(d.Indices) {
		return nil, rangeError(i, len(d.Indices))
	}
	return Value(ctx, d.Of.Value, d.Indices[i])
}

// Close does nothing, because the caller owns the data set.
func (d *subset) Close() error { return nil }

// RandomSplit divides a data set at random into subsets of the given lengths, as torch's
// random_split does. The division depends only on the seed. Lengths must be numbers of samples that
// add up to of.Len(), or fractions that add up to 1; otherwise RandomSplit panics. Fractions are
// rounded down, and the remaining samples are added to the subsets one by one in turn.
func RandomSplit(of Dataset, lengths []float64, seed uint64) []Dataset {
	n, sum := of.Len(), 0.0
	for _, l := range lengths {
		if l < 0 || math.IsNaN(l) {
			panic(fmt.Sprintf("data: RandomSplit: got lengths %v, want all at least 0", lengths))
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
		panic(fmt.Sprintf("data: RandomSplit: %d samples: got lengths %v with another sum", n, lengths))
	}
	order := rand.New(rand.NewPCG(seed, 0)).Perm(n)
	var all []Dataset
	for _, c := range counts {
		all = append(all, wrapValued(&subset{Any[Dataset]{of}, order[:c:c]}))
		order = order[c:]
	}
	return all
}

// A chainDataset concatenates several Streams part by part.
type chainDataset struct{ Of []Any[Stream] }

// NewChainDataset returns the concatenation of several Streams, as torch's ChainDataset does. Part
// i consists of part i of each Stream. The result is a [ValueStream] if one of them is.
func NewChainDataset(of ...Stream) Stream {
	d := new(chainDataset)
	for _, s := range of {
		d.Of = append(d.Of, Any[Stream]{s})
	}
	if slices.ContainsFunc(of, func(s Stream) bool { return hasValues(s) }) {
		return &valuedChain{*d}
	}
	return d
}

// Samples yields the samples of part p of each Stream.
func (d *chainDataset) Samples(ctx context.Context, p Part) iter.Seq2[Sample, error] {
	return concatStreams(d.Of, func(s Stream) iter.Seq2[Sample, error] { return s.Samples(ctx, p) })
}

// A valuedChain is a chainDataset that contains a [ValueStream], and is therefore one itself.
type valuedChain struct{ Of chainDataset }

// Samples yields the tensors of the samples of part p of each Stream.
func (d *valuedChain) Samples(ctx context.Context, p Part) iter.Seq2[Sample, error] {
	return d.Of.Samples(ctx, p)
}

// Values yields the samples of part p of each Stream as the Stream returns them.
func (d *valuedChain) Values(ctx context.Context, p Part) iter.Seq2[any, error] {
	return concatStreams(d.Of.Of, func(s Stream) iter.Seq2[any, error] { return valuesOf(ctx, s, p) })
}

// concatStreams concatenates the sequences of several Streams.
func concatStreams[T any](of []Any[Stream], samples func(s Stream) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, s := range of {
			for sample, err := range samples(s.Value) {
				if !yield(sample, err) {
					return
				}
			}
		}
	}
}
