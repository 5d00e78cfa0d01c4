package shm

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

var services struct {
	mu    sync.Mutex
	start []func(*Domain) (io.Closer, error)
}

// AtNew has start called with each domain that New makes in this process from now on; what it returns is closed with the domain, before that is
// left. It is for packages that need a process of every domain which keeps for the others what cannot lie in memory, such as
// descriptors. start must not ask for the default domain.
func AtNew(start func(*Domain) (io.Closer, error)) {
	services.mu.Lock()
	defer services.mu.Unlock()
	services.start = append(services.start, start)
}

// startServices starts what AtNew was given; if one fails, it closes the domain.
func (d *Domain) startServices() error {
	services.mu.Lock()
	all := services.start
	services.mu.Unlock()
	for _, start := range all {
		c, err := start(d)
		if err != nil {
			return errors.Join(fmt.Errorf("new domain: %w", err), d.Close())
		}
		d.services = append(d.services, c)
	}
	return nil
}

// AtClose has c closed when this process leaves the domain, before what it holds is given up. It is for packages whose references need something
// to be done first. Of a domain that was left already it is ErrClosed.
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
	return err
}
