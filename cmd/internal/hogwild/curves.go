package hogwild

import (
	"context"
	"errors"
	"math"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/shm"
)

// curves publishes figures of a run under names, so that shoal watch can plot them.
type curves struct {
	loss, accuracy *ipc.Latest[float64]
	bound          []string
}

// openCurves creates and binds the figures. They are NaN until the first report. A name that
// another run has bound is left to that run. The caller must call close.
func openCurves(ctx context.Context) (c *curves, err error) {
	c = new(curves)
	for _, n := range []struct {
		name string
		to   **ipc.Latest[float64]
	}{{"training loss", &c.loss}, {"training accuracy", &c.accuracy}} {
		if *n.to, err = ipc.NewLatest(math.NaN()); err != nil {
			return nil, errors.Join(err, c.close())
		}
		switch err := ipc.Bind(ctx, n.name, *n.to); {
		case err == nil:
			c.bound = append(c.bound, n.name)
		case !errors.Is(err, shm.ErrExist): // another run in this process has bound the name
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

// store publishes the means over the workers' latest reports. It must not be called concurrently.
func (c *curves) store(j *journal) error {
	ctx := context.Background() // never blocks: this is the only writer
	_, err1 := c.loss.Store(ctx, j.meanOf(func(r report) float64 { return r.Loss }))
	_, err2 := c.accuracy.Store(ctx, j.meanOf(func(r report) float64 { return r.Accuracy }))
	return errors.Join(err1, err2)
}

// close unbinds the names and closes the figures.
func (c *curves) close() (err error) {
	for _, name := range c.bound {
		err = errors.Join(err, ipc.Unlink(name))
	}
	for _, l := range []*ipc.Latest[float64]{c.loss, c.accuracy} {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
	}
	return err
}
