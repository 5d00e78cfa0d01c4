package data

import (
	"context"
	"iter"

	"github.com/shoal-mp/shoal/data/internal/maker"
)

func init() { maker.Data = forService{} }

// forService is the value of [maker.Data]. It gives package data/service access to Loaders.
type forService struct{}

// Open implements [maker.Open]. l must be a *Loader.
func (forService) Open(l any) (maker.Maker, error) { return newByNumber(l.(*Loader)) }

// NewLoader implements [maker.NewLoader]. It returns a *Loader that reads batches from s. opts
// must be Options for a Stream; it panics if they are invalid.
func (forService) NewLoader(s maker.Source, opts any) any {
	l := newLoader(nil, opts.(Options).withDefaults(true))
	l.elsewhere = func() executor { return &sourceExecutor{reader: s.Reader()} }
	return l
}

// Each implements [maker.Each]. It yields the batches of an epoch of a *Loader; the consumer
// owns them. The sequence ends with the first error.
func (forService) Each(ctx context.Context, loader any, epoch int) iter.Seq2[maker.Batch, error] {
	l := loader.(*Loader)
	return func(yield func(maker.Batch, error) bool) {
		l.each(ctx, epoch, func(s *batchState, err error) bool {
			if err != nil {
				return yield(maker.Batch{}, err)
			}
			return yield(maker.Batch{Value: s.structuredBatch(), Samples: s.sampleCount(l.opts.BatchSize)}, nil)
		})
	}
}
