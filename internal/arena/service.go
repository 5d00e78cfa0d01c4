package arena

import (
	"errors"
	"io"
)

// AtClose has c closed when this process leaves the domain, before the process gives up what it
// holds. It is for packages that must act before their references end. The error is ErrClosed where
// the process has left the domain.
func (d *Domain) AtClose(c io.Closer) error {
	d.closing.Lock()
	defer d.closing.Unlock()
	if d.closed.Load() {
		return ErrClosed
	}
	d.services = append(d.services, c)
	return nil
}

func (d *Domain) closeServices() (err error) {
	for _, c := range d.services {
		err = errors.Join(err, c.Close())
	}
	d.services = nil // who still has the domain has nothing of theirs
	return err
}
