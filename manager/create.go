package manager

import (
	"errors"
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/internal/arena"
)

// createObject creates an object of the kind named by the first argument, and adds an encoded
// proxy to the results of c. The other arguments are passed to the constructor. It returns
// [ErrNoObject] if no kind has that name.
func (l *served) createObject(c *call) error {
	name, err := decodeArg[string](c, 0)
	if err != nil {
		return err
	}
	k := kinds[name]
	if k == nil {
		return fmt.Errorf("%w: type %q is not registered in the server", ErrNoObject, name)
	}
	c.obj.kind = &kind{name: name}
	c.Args = c.Args[1:]
	state, err := k.make(c)
	if err != nil {
		return err
	}
	proxy, err := l.s.addObject(k, state)
	if err != nil {
		return errors.Join(err, closeState(l.s.d, state))
	}
	c.results = append(c.results, proxy)
	return nil
}

// addObject assigns an id and a beacon to a new object of kind k, and returns the encoding of
// its first proxy, which the caller must release. The object is disposed of when no proxy is
// left in any process.
func (s *server) addObject(k *kind, state any) (proxy item, err error) {
	life, token, err := newBeacon(s.d)
	if err != nil {
		return item{}, err
	}
	o := &object{kind: k, life: life, state: state}
	if sh, ok := state.(sharer); ok {
		o.data = sh.sharedBlock()
	}
	s.mu.Lock()
	s.last++
	o.id = s.last
	s.objects[o.id] = o
	s.named[token] = o.id
	if o.data != 0 {
		s.named[o.data] = anyBlock
	}
	s.mu.Unlock()
	f := form{id: o.id, life: token, data: o.data,
		address: address{server: s.id, pid: os.Getpid(), accept: s.accept.Handle(), alive: s.alive.ring.Handle()}}
	a, err := packWith(false, f.encodeForm)
	if err == nil {
		proxy, err = a.item.clone(s.d)
		a.releaseArg(err == nil)
	}
	err = errors.Join(err, s.d.Release(token)) // now the proxies hold it
	s.done.Go(func() { s.awaitAndDispose(o, token) })
	return proxy, err
}

// awaitAndDispose waits until no process has a proxy of o, and then removes o from the server
// and disposes of it. It returns early if the server ends. token is the token of o's beacon.
func (s *server) awaitAndDispose(o *object, token arena.Handle) {
	if o.life.awaitRelease(s.ctx) != nil {
		return // the server ends, and closes the remaining objects
	}
	s.mu.Lock()
	delete(s.objects, o.id)
	delete(s.named, token)
	delete(s.named, o.data)
	s.mu.Unlock()
	s.disposeObject(o)
}

func (s *server) disposeObject(o *object) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gone = true
	o.changed.broadcast()
	return errors.Join(closeState(s.d, o.state), o.life.close())
}

func closeState(k keeper, state any) error {
	if c, ok := state.(closer); ok {
		c.close(k)
	}
	if sh, ok := state.(sharer); ok {
		return k.Release(sh.sharedBlock())
	}
	return nil
}
