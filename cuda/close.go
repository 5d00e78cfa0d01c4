package cuda

import (
	"errors"

	"github.com/shoal-mp/shoal/internal/cudriver"
)

// Close gives back all that this process has of devices: memory that it keeps for later
// allocations, and contexts. Its tensors there are closed before, or the error says that one is in
// use. A program may leave Close to the end of the process. After Close the next call begins anew.
func Close() error {
	err := errors.Join(emptyCaches(), unlockAll())
	segments.Lock()
	segments.domain = nil
	for block, s := range segments.m {
		if s.refs > 0 {
			err = errors.Join(err, errors.New("a segment is in use"))
		}
		delete(segments.m, block)
		err = errors.Join(err, s.unmap())
	}
	segments.Unlock()
	process.Lock()
	defer process.Unlock()
	if process.system != nil {
		for _, d := range process.system.devices {
			if d.ready.Load() != nil {
				err = errors.Join(err, d.do(func(s cudriver.Stream) error {
					return errors.Join(d.driver.StreamDestroy(s), d.driver.StreamDestroy(d.ready.Load().side))
				}), d.driver.PrimaryCtxRelease(d.id))
				d.ready.Store(nil)
			}
		}
	}
	process.system, process.err, process.chosen = nil, nil, 0
	return err
}
