package hogwild

import (
	"context"
	"errors"
	"math"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/shm"
)

// curves are the numbers of a run that others see, by their names: shoal watch draws them.
type curves struct {
	loss, accuracy *ipc.Latest[float64]
	bound          []string
}

// openCurves makes them. Before the first report they are no numbers.
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
		case !errors.Is(err, shm.ErrExist): // another run of this program has the name, and is drawn
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

// store shows the mean of what the workers have reported last.
func (c *curves) store(j *journal) error {
	ctx := context.Background() // it waits for nobody: nothing else stores
	_, err1 := c.loss.Store(ctx, j.mean(func(r report) float64 { return r.Loss }))
	_, err2 := c.accuracy.Store(ctx, j.mean(func(r report) float64 { return r.Accuracy }))
	return errors.Join(err1, err2)
}

// close gives back the numbers and their names.
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
