package arena

import (
	"errors"
	"io"
)

// AtClose registers c to be closed when this process leaves the domain, before the process drops
// its references. It is for packages that must do work before that. c.Close must not call
// AtClose or [Domain.Close]: it is called under the mutex that both lock. AtClose returns
// [ErrClosed] if the process has left the domain already; c is not closed then.
func (d *Domain) AtClose(c io.Closer) error {
	d.closing.Lock()
	defer d.closing.Unlock()
	if d.closed.Load() {
		return ErrClosed
	}
	d.services = append(d.services, c)
	return nil
}

// closeServices closes the services registered by [Domain.AtClose], in the order of their
// registration. The caller must hold d.closing.
func (d *Domain) closeServices() (err error) {
	for _, c := range d.services {
		err = errors.Join(err, c.Close())
	}
	d.services = nil // lets the collector free them while the Domain is still reachable
	return err
}
