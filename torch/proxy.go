package torch

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
)

// A Proxy refers to an object in a Python manager's server and holds a reference to it until it
// is closed. [Manager.Create] and [Proxy.Call] return one, and a message may contain one. A
// program may send a Proxy to Python, which then gets its own proxy; the sender must keep its
// Proxy open until the message has been received. The methods may be called from several
// goroutines.
type Proxy struct {
	m        *Manager
	name, id string
	exposed  []string
	class    python.Global // the Python class of its proxies
	shared   *sharedProxy  // shared by the results of Thread
	own      *Conn         // the connection of a result of Thread, or nil
	calling  sync.Mutex    // serializes the calls on own
}

// sharedProxy is a reference that the server has counted. A [Proxy] and the results of its
// [Proxy.Thread] share one, and it is released once.
type sharedProxy struct {
	once sync.Once
	err  error
}

// adoptReference returns a proxy for a reference that the server has already counted. id
// identifies the object and name is its registered type. The caller must close the proxy.
func (m *Manager) adoptReference(name, id string, exposed []string) *Proxy {
	p := &Proxy{m: m, name: name, id: id, exposed: exposed, class: proxyClass(name), shared: new(sharedProxy)}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.proxies[p] = true
	return p
}

// self returns p. It identifies the types that embed a *[Proxy].
func (p *Proxy) self() *Proxy { return p }

// Call calls a method of the object and returns its result: a value as returned by [Conn.Recv], or
// a *[Proxy] if the method is registered to return one. The last argument may be [Keywords]. If the
// method raises an exception, the error is a *[RemoteError]. If ctx is done first, the call
// continues in the server and its result is lost; the methods of [Queue], [Semaphore] and [Event]
// wait without this risk.
func (p *Proxy) Call(ctx context.Context, method string, args ...any) (any, error) {
	if p.own != nil {
		p.calling.Lock()
		defer p.calling.Unlock()
		return p.m.request(ctx, p.own, p.id, method, args)
	}
	c, err := p.m.threadConn(ctx)
	if err != nil {
		return nil, err
	}
	defer p.m.putConn(c)
	return p.m.request(ctx, c, p.id, method, args)
}

// Thread returns a proxy of the same object. One thread of the server executes its calls, in order.
// A thread is required as the owner of an RLock and of the lock of a Condition. The caller must
// close the returned Proxy before p.
func (p *Proxy) Thread(ctx context.Context) (*Proxy, error) {
	c, err := p.m.threadConn(ctx)
	if err != nil {
		return nil, err
	}
	return &Proxy{m: p.m, name: p.name, id: p.id, exposed: p.exposed, class: p.class, shared: p.shared, own: c}, nil
}

// Close releases the reference. The server destroys the object when no reference remains. The
// Proxy must not be used afterwards. Close is idempotent.
func (p *Proxy) Close() error {
	if p.own != nil {
		return p.own.Close()
	}
	p.shared.once.Do(func() {
		p.m.mu.Lock()
		delete(p.m.proxies, p)
		p.m.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, p.shared.err = p.m.callOnce(ctx, "decref", p.id)
		if p.m.alone {
			p.shared.err = errors.Join(p.shared.err, p.m.Close())
		}
	})
	return p.shared.err
}

var (
	rebuildProxy = named("multiprocessing.managers.RebuildProxy")
	autoProxy    = named("multiprocessing.managers.AutoProxy")
	tokenClass   = named("multiprocessing.managers.Token")
)

// proxyClasses maps the type names of a SyncManager to their Python proxy classes, which know their
// methods. An AutoProxy would ask the server for the methods instead, which does not work for all
// types: the AutoProxy of a Namespace recurses without end.
var proxyClasses = map[string]python.Global{
	"dict": managersGlobal("DictProxy"), "list": managersGlobal("ListProxy"),
	"Namespace": managersGlobal("NamespaceProxy"),
	"Value":     managersGlobal("ValueProxy"), "Array": managersGlobal("ArrayProxy"),
	"Event": managersGlobal("EventProxy"),
	"Lock":  managersGlobal("AcquirerProxy"), "RLock": managersGlobal("AcquirerProxy"),
	"Semaphore":        managersGlobal("AcquirerProxy"),
	"BoundedSemaphore": managersGlobal("AcquirerProxy"), "Condition": managersGlobal("ConditionProxy"),
	"Barrier": managersGlobal("BarrierProxy"), "Pool": managersGlobal("PoolProxy"),
	"Iterator": managersGlobal("IteratorProxy"),
}

func managersGlobal(name string) python.Global {
	return python.Global{Module: "multiprocessing.managers", Name: name}
}

// proxyClass returns the Python class of proxies for a registered type name, AutoProxy if a
// SyncManager does not have the type.
func proxyClass(name string) python.Global {
	if class, ok := proxyClasses[name]; ok {
		return class
	}
	return autoProxy
}

// A token identifies an object of a manager: its registered type, its ID, and the address of the
// server. decodeToken makes it.
type token struct {
	name, id      string
	network, addr string
}

// decodeToken decodes the state (name, address, id) of a Token. The error wraps [ErrProtocol].
func (i *importer) decodeToken(o *pickle.Object) (t token, err error) {
	state, _ := o.State.(python.Tuple)
	if len(state) != 3 {
		return t, protocolError("token of a proxy has %d parts, want 3", len(state))
	}
	var ok, both bool
	t.name, ok = state[0].(string)
	t.id, both = state[2].(string)
	if !ok || !both {
		return t, protocolError("token of a proxy holds %T and %T, want two strings", state[0], state[2])
	}
	if pair, tcp := state[1].(python.Tuple); tcp && len(pair) == 2 {
		host, ok := pair[0].(string)
		port, both := pair[1].(int64)
		if !ok || !both {
			return t, protocolError("address of a proxy is %T and %T, want a str and an int", pair[0], pair[1])
		}
		t.network, t.addr = "tcp", net.JoinHostPort(host, strconv.FormatInt(port, 10))
		return t, nil
	}
	t.network = "unix"
	t.addr, err = fromPython(state[1])
	return t, err
}

// decodeProxy decodes RebuildProxy(class, token, serializer, {'exposed': …}) to a *[Proxy], and
// increments the reference count of the object in its server.
func (i *importer) decodeProxy(o *pickle.Object) (any, error) {
	class, err := value.Arg[python.Global](o, 0)
	if err != nil {
		return nil, err
	}
	to, err := value.Arg[*pickle.Object](o, 1)
	if err != nil || to.Class != tokenClass {
		return nil, protocolError("proxy has no Token")
	}
	t, err := i.decodeToken(to)
	if err != nil {
		return nil, err
	}
	if serializer, err := value.Arg[string](o, 2); err != nil || serializer != "pickle" {
		return nil, unsupported("serializer of a proxy is %q, want \"pickle\"", serializer)
	}
	m := i.manager
	if m == nil || m.network != t.network || m.addr != t.addr {
		m = newManager(t.network, t.addr, i.opts)
		m.alone = true
	}
	if _, err := m.callOnce(i.ctx, "incref", t.id); err != nil {
		return nil, err
	}
	p := m.adoptReference(t.name, t.id, nil)
	p.class = class
	kwds, _ := value.Arg[*python.Dict](o, 3)
	if exposed, ok := kwds.Get("exposed"); ok {
		lifted, err := i.Lift(exposed)
		if err == nil {
			err = assign(&p.exposed, lifted)
		}
		if err != nil {
			return nil,
				errors.Join(protocolError("methods of a proxy are %T, want a list of strings", exposed), p.Close())
		}
	}
	return p, nil
}

// encodeProxy encodes a proxy, or None if p is nil. The receiver increments the reference count
// of the object, so p must stay open until then.
func (e *exporter) encodeProxy(p *Proxy) (any, error) {
	if p == nil {
		return nil, nil
	}
	var addr any
	switch name, abstract := strings.CutPrefix(p.m.addr, "@"); {
	case p.m.network == "tcp":
		host, port, err := net.SplitHostPort(p.m.addr)
		if err != nil {
			return nil, err
		}
		n, err := strconv.Atoi(port)
		if err != nil {
			return nil, err
		}
		addr = python.Tuple{host, n}
	case abstract:
		addr = "\x00" + name
	default:
		addr = p.m.addr
	}
	kwds := new(python.Dict)
	if p.class == autoProxy && p.exposed != nil {
		exposed := python.Tuple{}
		for _, method := range p.exposed {
			exposed = append(exposed, method)
		}
		kwds = python.NewDict("exposed", exposed)
	}
	to := newInstance(tokenClass, python.Tuple{p.name, addr, p.id})
	return &pickle.Object{Class: rebuildProxy, Args: python.Tuple{p.class, to, "pickle", kwds}}, nil
}
